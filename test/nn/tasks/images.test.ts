/** Functions for images: batches, labels and texts. Results of models are compared in test/nn/models/vision. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { io, nn, noGrad, tensor } from "../../../src/index.ts";
import { smallDetector, smallDual, smallVision } from "../../arguments/small_vision.ts";
import { Random } from "../../ops/samples.ts";
import { testFolder } from "../../support/folder.ts";
import { seed } from "../../support/some.ts";
import { errorOf } from "../models/weights.ts";
import { folderOf, load } from "./models.ts";

const folder = testFolder("images");
const random = new Random(seed);
const drawn = () => {
  const shape = [[1, 3, 4][random.integer(0, 2)], random.integer(2, 9), random.integer(2, 9)];
  const bytes = Uint8Array.from({ length: shape[0] * shape[1] * shape[2] }, () => random.integer(0, 255));
  return tensor(bytes, { shape });
};
const softmax = (scores: readonly number[]) => {
  const powers = scores.map(Math.exp);
  return powers.map((power) => power / powers.reduce((sum, each) => sum + each, 0));
};
const row = (x: { toArray(): unknown }) => (x.toArray() as number[][])[0];

test("a classifier labels images of any size, in batches of any size", async () => {
  const model = smallVision(3);
  // without resizing, images of different sizes can't be in one batch
  model.processor = new nn.ImageProcessor({ rescale: 1 / 255 });
  const images = Array.from({ length: random.integer(5, 12) }, drawn);
  const got = await nn.classifyImages(model, images, { batch: random.integer(1, 4) });
  for (const [at, image] of images.entries()) {
    const want = softmax(row(noGrad(() => model.forward(model.processor!.process(image)))));
    expect(got[at].map(({ score }) => score)).toEqual([...want].sort((a, b) => b - a).map((x) => expect.closeTo(x, 5)));
    expect(got[at][0].label).toBe(`label ${want.indexOf(Math.max(...want))}`);
  }
});

test.each([false, true])("images are labeled in words, with sigmoid: %p", async (sigmoid) => {
  const { tokenizer } = await load(await folderOf(folder.file("bert"), "classify", { isBare: true }));
  const model = smallDual(tokenizer, sigmoid);
  const [image, labels, template] = [drawn(), ["one", "Three", "two"], "a {}!"];
  const [got] = await nn.classifyImages(model, [image], { labels, template });
  const scores = labels.map((label) => {
    const ids = tokenizer!.encode(sigmoid ? `a ${label}!`.toLowerCase() : `a ${label}!`).slice(0, 24);
    const padded = sigmoid ? [...ids, ...Array<number>(24 - ids.length).fill(tokenizer!.padding ?? 1)] : ids;
    const tokens = tensor(Int32Array.from(padded), { shape: [1, padded.length] });
    return row(noGrad(() => model.forward(model.processor!.process(image), tokens)))[0];
  });
  const want = sigmoid ? scores.map((score) => 1 / (1 + Math.exp(-score))) : softmax(scores);
  for (const { label, score } of got) expect(score).toBeCloseTo(want[labels.indexOf(label)], 5);
  // SigLIP's vector of a text is the vector of its last token, after padding
  const padded = Int32Array.from({ length: sigmoid ? 24 : 3 }, (_, at) => [5, 6, 7][at] ?? tokenizer!.padding ?? 1);
  const vector = noGrad(() => model.embedTexts(tensor(padded, { shape: [1, padded.length] })));
  expect(errorOf(await nn.embed(model, [[5, 6, 7]], { normalize: false }), vector)).toBeLessThan(1e-6);
});

test("images and texts have vectors in the same space, also from files", async () => {
  const { tokenizer } = await load(await folderOf(folder.file("bert"), "classify", { isBare: true }));
  const model = smallDual(tokenizer);
  const image = tensor(
    new Uint8Array(3 * 5 * 7).map(() => random.integer(0, 255)),
    { shape: [3, 5, 7] },
  );
  const path = join(folder.path, "image.png");
  await io.saveImage(path, image);
  const images = await nn.embedImages(model, [path, image, image.float().div(255)], { normalize: false });
  const want = noGrad(() => model.embedImages(model.processor!.process([image, image, image])));
  expect(errorOf(images, want)).toBeLessThan(1e-6);
  const texts = await nn.embed(model, ["one two", [5, 6, 7], "three"], { batch: 2 });
  for (const length of (await texts.square().sum({ dim: 1 }).data()) as Float32Array) expect(length).toBeCloseTo(1, 5);
  const alone = await nn.embed(model, ["three"]);
  expect(errorOf(texts.narrow(0, 2, 1), alone)).toBeLessThan(1e-6);
});

test("objects are found in images of different sizes", async () => {
  const [labels, images] = [2, Array.from({ length: 4 }, drawn)];
  const model = smallDetector(labels);
  const threshold = 0.3;
  const got = await nn.detectObjects(model, images, { batch: 3, threshold });
  for (const [at, image] of images.entries()) {
    const { logits, boxes } = noGrad(() => model.forward(model.processor!.process(image)));
    const [height, width] = image.shape.slice(1) as [number, number];
    const tokens = (logits.toArray() as number[][][])[0].map((scores, token) => {
      const known = softmax(scores).slice(0, labels);
      const score = Math.max(...known);
      const [x, y, across, down] = (boxes.toArray() as [number, number, number, number][][])[0][token];
      const sides = { left: x - across / 2, right: x + across / 2, top: y - down / 2, bottom: y + down / 2 };
      const pixels = Object.entries(sides).map(([side, value]) => {
        const along = side === "left" || side === "right" ? width : height;
        return [side, expect.closeTo(value * along, 4)];
      });
      return { score, found: { label: `label ${known.indexOf(score)}`, box: Object.fromEntries(pixels) } };
    });
    const want = tokens.filter(({ score }) => score > threshold).sort((a, b) => b.score - a.score);
    expect(got[at]).toEqual(want.map(({ score, found }) => ({ ...found, score: expect.closeTo(score, 5) })));
  }
});

test("unsuitable models and images are errors", async () => {
  const plain = smallVision();
  await expect(nn.classifyImages(plain, [drawn()])).rejects.toThrow("expected a model with a classifier");
  plain.processor = undefined;
  await expect(nn.embedImages(plain, [drawn()])).rejects.toThrow("expected a model with an image processor");
  expect(() => plain.forward(tensor([1]))).toThrow("expected pixels to be [batch, 3, height, width]");
  const processor = new nn.ImageProcessor({});
  expect(() => processor.process([])).toThrow("expected at least one image");
  expect(() => processor.process(tensor([[[1]], [[1]]]))).toThrow("with 1, 3 or 4 channels");
  expect(() => nn.loadImageProcessor(folder.path)).toThrow("preprocessor_config.json");
});
