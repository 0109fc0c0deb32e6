// Searches images by a sentence: trains a small CLIP on drawings and their descriptions, then ranks new drawings.
//
//   bun examples/search_images.ts [shapes.svg] [steps]
import { arange, crossEntropy, manualSeed, matmul, nn, optim, rand, type Tensor, tensor, tidy } from "../src/index.ts";
import { imageOf, save } from "./picture.ts";

const [path = "shapes.svg", steps = "700"] = process.argv.slice(2);
const [side, batch] = [24, 40];

const colors = { red: [222, 60, 50], green: [60, 160, 80], blue: [50, 100, 220], orange: [245, 165, 40] } as const;
const shapes = {
  circle: (x: number, y: number) => x * x + y * y < 1,
  square: (x: number, y: number) => Math.max(Math.abs(x), Math.abs(y)) < 0.85,
  triangle: (x: number, y: number) => y < 0.85 && Math.abs(x) < (y + 1.1) / 2,
  ring: (x: number, y: number) => x * x + y * y < 1 && x * x + y * y > 0.35,
} as const;
const sizes = { small: 4, large: 7 } as const;
const places = { left: 7, right: 16 } as const;
const words = ["(end)", "a", "on", "the", ...[colors, shapes, sizes, places].flatMap((each) => Object.keys(each))];

const tokensOf = (text: string): number[] => [...text.split(" ").map((word) => words.indexOf(word)), 0];

interface Drawing {
  readonly text: string;
  /** uint8 [3, side, side] */
  readonly image: Tensor;
}

/** Draws one shape on noise, at about the position that the text describes, in a varying color. */
function draw(): Drawing {
  const random = rand([16 + side * side]).dataSync() as Float32Array;
  const pick = <K extends string>(of: Readonly<Record<K, unknown>>, at: number): K => {
    const keys = Object.keys(of) as K[];
    return keys[Math.floor(random[at] * keys.length)];
  };
  const [color, shape, size, place] = [pick(colors, 0), pick(shapes, 1), pick(sizes, 2), pick(places, 3)];
  const radius = sizes[size] * (0.9 + 0.2 * random[4]);
  const [x, y] = [places[place] + 3 * random[5] - 1.5, 8 + 8 * random[6]];
  const bytes = new Uint8Array(3 * side * side);
  for (let pixel = 0; pixel < side * side; pixel++) {
    const isInside = shapes[shape](((pixel % side) - x) / radius, (Math.floor(pixel / side) - y) / radius);
    for (let channel = 0; channel < 3; channel++) {
      const value = isInside ? colors[color][channel] + 40 * (random[7 + channel] - 0.5) : 235;
      bytes[channel * side * side + pixel] = Math.min(255, value + 10 * random[16 + pixel]);
    }
  }
  return { text: `a ${size} ${color} ${shape} on the ${place}`, image: tensor(bytes, { shape: [3, side, side] }) };
}

const tower = { hidden_size: 48, intermediate_size: 96, num_hidden_layers: 2, num_attention_heads: 4 };
manualSeed(0);
const model = nn.createModel<nn.DualEncoder>(
  {
    model_type: "clip",
    architectures: ["CLIPModel"],
    projection_dim: 32,
    vision_config: { ...tower, image_size: side, patch_size: 4 },
    text_config: { ...tower, vocab_size: words.length, max_position_embeddings: 8, eos_token_id: 0 },
  },
  { initialization: nn.pytorchInitialization },
);
model.processor = new nn.ImageProcessor({ rescale: 1 / 255, mean: [0.5], std: [0.25] });

const optimizer = new optim.AdamW(model.parameters(), { lr: 3e-3, weightDecay: 0 });
const schedule = optim.cosineWithWarmup({ warmup: 20, total: Math.max(Number(steps), 21), floor: 0.02 });

/** Returns a batch of drawings with distinct texts. */
function drawn(): Drawing[] {
  const found = new Map<string, Drawing>();
  while (found.size < batch) {
    const drawing = draw();
    found.get(drawing.text)?.image.dispose();
    found.set(drawing.text, drawing);
  }
  return [...found.values()];
}

for (let step = 1; step <= Number(steps); step++) {
  optimizer.scaleLearningRate(schedule(step));
  const drawings = drawn();
  const loss = tidy(() => {
    const pixels = model.processor!.process(drawings.map(({ image }) => image));
    const tokens = tensor(
      drawings.map(({ text }) => tokensOf(text)),
      { dtype: "int32" },
    );
    // each image matches the text of the same row, and vice versa
    const [scores, own] = [model.forward(pixels, tokens), arange(batch, { dtype: "int64" })];
    const loss = crossEntropy(scores, own).add(crossEntropy(scores.T, own)).div(2);
    loss.backward();
    return Number(loss.item());
  });
  optimizer.step();
  optimizer.zeroGrad();
  for (const { image } of drawings) image.dispose();
  if (step % 100 === 0 || step === 1 || step === Number(steps)) console.log(`step ${step}: loss ${loss.toFixed(3)}`);
}

const gallery = Array.from({ length: 200 }, draw);
const questions = [
  "a large red ring on the left",
  "a small blue square on the right",
  "a large green triangle on the left",
];
const images = await nn.embedImages(
  model,
  gallery.map(({ image }) => image),
);
const texts = await nn.embed(model, questions.map(tokensOf));
const cosines = matmul(texts, images.T).tolist() as number[][];

const [shown, scale] = [8, 4];
let right = 0;
const rows = questions.map((question, row) => {
  const ranked = gallery.map((drawing, at) => ({ ...drawing, cosine: cosines[row][at] }));
  const best = ranked.toSorted((a, b) => b.cosine - a.cosine).slice(0, shown);
  const there = Math.min(shown, gallery.filter(({ text }) => text === question).length);
  right += best.slice(0, there).filter(({ text }) => text === question).length / Math.max(1, there) / questions.length;
  console.log(
    `${question}: ${best
      .slice(0, 3)
      .map(({ text, cosine }) => `${text} (${cosine.toFixed(2)})`)
      .join(", ")}`,
  );
  const pictures = best.map(({ image }, at) => {
    const bytes = image.dataSync() as Uint8Array;
    const shades = Array.from({ length: side * side }, (_, pixel) => {
      const parts = [0, 1, 2].map((channel) => bytes[channel * side * side + pixel] & 0xe0);
      return `#${parts.map((part) => (part >> 4).toString(16)).join("")}`;
    });
    return `<g transform="translate(${at * (side * scale + 12)} 12)">${imageOf(shades, side, scale)}</g>`;
  });
  const top = 48 + row * (side * scale + 56);
  return `<g transform="translate(24 ${top})"><text>${question}</text>${pictures.join("")}</g>`;
});
console.log(`${(100 * right).toFixed(0)} % of the first results are drawings of the sentence`);

const [width, height] = [36 + shown * (side * scale + 12), 24 + questions.length * (side * scale + 56)];
await save(
  path,
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" \
font-family="Inter, sans-serif" font-size="15" fill="#334155">
<title>Drawings that a small CLIP finds by sentences</title>
<rect width="${width}" height="${height}" fill="white"/>
${rows.join("\n")}
</svg>
`,
);
