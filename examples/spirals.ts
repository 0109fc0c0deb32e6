// Learns to separate two spirals: the README's program, and a picture of what the network has learned after a few
// steps, after more, and at the end.
//
//   bun examples/spirals.ts [spirals.svg]
import {
  cat,
  crossEntropy,
  linspace,
  manualSeed,
  nn,
  noGrad,
  ones,
  optim,
  stack,
  type Tensor,
  tidy,
  zeros,
} from "../src/index.ts";
import { dotsOf, imageOf, numbersOf, save } from "./picture.ts";

const [path = "spirals.svg"] = process.argv.slice(2);

manualSeed(0);
const t = linspace(1, 9, 200).unsqueeze(1);
const spiral = cat([t.cos(), t.sin()], 1).mul(t);
const [x, y] = [cat([spiral, spiral.neg()]), cat([zeros(200), ones(200)]).to("int64")];
const model = new nn.MLP({ width: 2, hidden: 128 });
const optimizer = new optim.AdamW(model.parameters(), { lr: 0.02 });

/** Pixels of a panel, cells of its field along an axis, and the extent of the field from the center. */
const [side, cells, reach] = [300, 75, 9.6];

/** The fraction of points whose class is the more likely one. */
const accuracy = (): number => noGrad(() => Number(model.forward(x).argmax(1).eq(y).to("float32").mean().item()));

/** The probability of the second class at the center of each cell, row by row. */
function field(): number[] {
  const axis = linspace(-reach * (1 - 1 / cells), reach * (1 - 1 / cells), cells);
  const across = axis.unsqueeze(0).expand([cells, cells]);
  const down = axis.unsqueeze(1).expand([cells, cells]);
  const places = stack([across, down], 2).reshape([cells * cells, 2]);
  return tidy(() => noGrad(() => numbersOf(model.forward(places).softmax(1).select(1, 1))));
}

const shades = ["#bfdbfe", "#dbeafe", "#f1f5f9", "#ffedd5", "#fed7aa"];
const shadeOf = (probability: number): string =>
  shades[Math.min(shades.length - 1, Math.floor(probability * shades.length))];

function dots(points: Tensor, color: string): string {
  const values = numbersOf(
    points
      .div(reach)
      .add(1)
      .mul(side / 2),
  );
  // Half of the points are enough.
  const places = Array.from({ length: values.length / 4 }, (_, at) => [values[4 * at], values[4 * at + 1]] as const);
  return dotsOf(places, 2.5, color);
}

function panel(left: number, step: number): string {
  const title = `${step} steps, ${(100 * accuracy()).toFixed(0)} % right`;
  return `<g transform="translate(${left} 36)">${imageOf(field().map(shadeOf), cells, side / cells)}
${dots(x.narrow(0, 0, 200), "#2563eb")}${dots(x.narrow(0, 200, 200), "#ea580c")}
<text x="${side / 2}" y="-12" text-anchor="middle">${title}</text></g>`;
}

const panels: string[] = [];
for (let step = 0; step <= 300; step++) {
  if ([10, 60, 300].includes(step)) panels.push(panel(15 + panels.length * 315, step));
  crossEntropy(model.forward(x), y).backward();
  optimizer.step();
  optimizer.zeroGrad();
}
console.log(`${100 * accuracy()} % of the points are on the right side`);

const size = 'viewBox="0 0 960 351" width="960" height="351"';
await save(
  path,
  `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="Inter, sans-serif" font-size="15" fill="#334155">
<title>A network learns to tell two spirals apart</title>
<rect width="960" height="351" rx="8" fill="white"/>
${panels.join("\n")}
</svg>
`,
);
