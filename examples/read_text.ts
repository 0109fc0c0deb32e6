// Reads the text of a picture with two ONNX models of RapidOCR: one finds lines of text, the other reads them. Writes a
// picture of what they found.
//
//   bun examples/read_text.ts [read_text.png] [picture.png]
//
// Without a picture, some lines are drawn. The models are from the package rapidocr-onnxruntime on PyPI.
import { join } from "node:path";
import { interpolate, io, Tensor } from "../src/index.ts";
import { toPng } from "../src/train/curve.ts";
import { pythonPackage } from "./packages.ts";
import { numbersOf, save } from "./picture.ts";

const [path = "read_text.png", given] = process.argv.slice(2);

const lines: readonly [x: number, y: number, size: number, color: string, text: string][] = [
  [60, 90, 44, "#1e293b", "Orchard Cafe"],
  [60, 150, 26, "#475569", "Apple pie with cream 4.50"],
  [60, 195, 26, "#475569", "Pear juice, freshly pressed 3.20"],
  [60, 240, 26, "#475569", "Two slices of plum cake 5.80"],
  [520, 330, 32, "#b91c1c", "OPEN 9-18"],
  [60, 420, 24, "#15803d", "Please order at the counter."],
];
const texts = lines.map(
  ([x, y, size, color, text]) => `<text x="${x}" y="${y}" font-size="${size}" fill="${color}">${text}</text>`,
);
const drawn = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 480" font-family="Inter">
<rect width="960" height="480" fill="#fefce8"/><circle cx="800" cy="150" r="70" fill="#fca5a5"/>
${texts.join("\n")}
</svg>`;
const bytes = given === undefined ? await toPng(drawn) : await Bun.file(given).bytes();
const picture = await io.loadImage(bytes); // uint8 [3, height, width]
const [, height, width] = picture.shape;

const models = join(pythonPackage("rapidocr-onnxruntime==1.4.4"), "rapidocr_onnxruntime", "models");
const finder = await io.loadOnnx(join(models, "ch_PP-OCRv4_det_infer.onnx"));
const reader = await io.loadOnnx(join(models, "ch_PP-OCRv4_rec_infer.onnx"));
/** The first class means no character, and the last one a space. */
const characters = ["", ...reader.metadata.get("character")!.split("\n"), " "];

/** Resizes, and maps 0 to −1 and 255 to 1. The models expect the channels in the order blue, green, red. */
function prepared(image: Tensor, size: readonly [number, number]): Tensor {
  const scaled = image.to("float32").div(127.5).sub(1).flip(0).unsqueeze(0);
  return interpolate(scaled, { size: [...size], mode: "bilinear", alignCorners: false });
}

async function outputOf(model: io.OnnxModel, x: Tensor): Promise<Tensor> {
  const [output] = Object.values(await model.run({ x }));
  if (!(output instanceof Tensor)) throw new Error("expected a tensor");
  return output;
}

interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** Rectangles around connected pixels above a threshold. */
function boxesIn(map: readonly number[], columns: number): Box[] {
  const seen = new Set<number>();
  const boxes: Box[] = [];
  for (const [start, probability] of map.entries()) {
    if (probability < 0.3 || seen.has(start)) continue;
    const waiting = [start];
    seen.add(start);
    let [left, right, top, bottom] = [columns, 0, map.length / columns, 0];
    for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
      const [x, y] = [at % columns, Math.floor(at / columns)];
      [left, right] = [Math.min(left, x), Math.max(right, x + 1)];
      [top, bottom] = [Math.min(top, y), Math.max(bottom, y + 1)];
      for (const next of [x > 0 ? at - 1 : -1, x + 1 < columns ? at + 1 : -1, at - columns, at + columns]) {
        if ((map[next] ?? 0) < 0.3 || seen.has(next)) continue;
        seen.add(next);
        waiting.push(next);
      }
    }
    if (right - left > 8 && bottom - top > 4) boxes.push({ left, top, right, bottom });
  }
  return boxes;
}

/** The model marks the middle of a line: the box grows by its area · 1.6 / its perimeter on each side. */
function grown({ left, top, right, bottom }: Box, [x, y]: readonly [number, number]): Box {
  const by = ((right - left) * (bottom - top) * 1.6) / (2 * (right - left + bottom - top));
  return {
    left: Math.max(0, Math.floor((left - by) * x)),
    right: Math.min(width, Math.ceil((right + by) * x)),
    top: Math.max(0, Math.floor((top - by) * y)),
    bottom: Math.min(height, Math.ceil((bottom + by) * y)),
  };
}

/** Reads a line: the likeliest class of each column, without repetitions. */
async function textIn({ left, top, right, bottom }: Box): Promise<string> {
  const line = picture.narrow(1, top, bottom - top).narrow(2, left, right - left);
  const columns = Math.max(48, Math.round((48 * (right - left)) / (bottom - top)));
  const classes = numbersOf((await outputOf(reader, prepared(line, [48, columns]))).argmax(2).select(0, 0));
  return classes.map((kind, at) => (kind === classes[at - 1] ? "" : characters[Number(kind)])).join("");
}

const scale = Math.min(1, 960 / Math.max(height, width));
const [rows, columns] = [height, width].map((side) => Math.max(32, Math.round((side * scale) / 32) * 32)) as [
  number,
  number,
];
const map = numbersOf((await outputOf(finder, prepared(picture, [rows, columns]))).reshape([-1]));
const boxes = boxesIn(map, columns).map((box) => grown(box, [width / columns, height / rows]));
boxes.sort((a, b) => a.top - b.top);
const found: { box: Box; text: string }[] = [];
for (const box of boxes) found.push({ box, text: await textIn(box) });
for (const { text } of found) console.log(text);

const marks = found.map(({ box: { left, top, right, bottom }, text }) => {
  const frame = `<rect x="${left}" y="${top}" width="${right - left}" height="${bottom - top}"/>`;
  const read = `<text x="${width + 40}" y="${(top + bottom) / 2 + 8}">${Bun.escapeHTML(text)}</text>`;
  return `<g fill="none" stroke="#2563eb" stroke-width="3">${frame}</g>${read}`;
});
const png = Buffer.from(await io.encodeImage(picture, { format: "png" }));
const text = `font-family="Inter, sans-serif" font-size="${height / 24}" fill="#334155"`;
await save(
  path,
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${2 * width} ${height}" ${text}>
<title>Lines of text that the models found, and what they read</title>
<rect width="${2 * width}" height="${height}" fill="white"/>
<image href="data:image/png;base64,${png.toString("base64")}" width="${width}" height="${height}"/>
${marks.join("\n")}
</svg>
`,
);
