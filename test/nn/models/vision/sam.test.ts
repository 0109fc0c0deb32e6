/** Compares SAM with `transformers`: scripts/fixtures/models/masks_of_prompts.py. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../../src/core/paths.ts";
import { backward, io, nn, noGrad, sum, type Tensor, tensor } from "../../../../src/index.ts";
import { testFolder } from "../../../support/folder.ts";
import { errorOf, weight } from "../weights.ts";

interface Case {
  readonly config: Readonly<Record<string, unknown>>;
  readonly shapes: Readonly<Record<string, number[]>>;
  readonly image: readonly [number, number, number];
  readonly processor: Readonly<Record<string, unknown>>;
  readonly prompts: readonly nn.SamPrompt[];
}

/** Relative to the largest number. Norms over 8 channels with an eps of 1e-6 amplify rounding errors. */
const CLOSE = 1e-4;
const fixture = join(packageRoot, "test", "fixtures", "vision", "sam");
const cases: readonly Case[] = JSON.parse(readFileSync(`${fixture}.json`, "utf8"));
const answers = io.loadSafetensors(`${fixture}.safetensors`);
const folder = testFolder("sam");

async function load(name: string, { config, shapes, processor }: Case): Promise<nn.Sam> {
  const path = folder.file(name);
  mkdirSync(path, { recursive: true });
  const write = (file: string, value: object) => writeFileSync(join(path, file), JSON.stringify(value));
  write("config.json", config);
  write("preprocessor_config.json", { image_processor_type: "SamImageProcessor", ...processor });
  const tensors = Object.entries(shapes).map(([key, shape]) => [key, weight(key, shape)] as const);
  await io.saveSafetensors(join(path, "model.safetensors"), Object.fromEntries(tensors));
  return (await nn.loadModel<nn.Sam>(path, { dtype: "float32" })).model;
}

function imageOf({ image }: Case): Tensor {
  const values = Array.from(weight("image", image).dataSync(), Number);
  return tensor(
    values.map((value) => Math.floor((value + 0.5) * 256)),
    { shape: [...image], dtype: "uint8" },
  );
}

describe.each([...cases.entries()])("model %d", (at, own) => {
  const loaded = load(`${at}`, own);

  test("pixels and embeddings", async () => {
    const model = await loaded;
    const pixels = answers[`${at}.pixels`]!;
    expect(errorOf(model.processor!.process(imageOf(own)), pixels)).toBeLessThan(1e-2); // one step of a byte
    expect(
      errorOf(
        noGrad(() => model.forward(pixels)),
        answers[`${at}.embedding`]!,
      ),
    ).toBeLessThan(CLOSE);
  });

  test("masks and scores", async () => {
    const model = await loaded;
    const embedding = answers[`${at}.embedding`]!;
    const { image } = model.description;
    const scale = image / Math.max(...own.image.slice(1));
    const [height, width] = own.image.slice(1).map((side) => Math.floor(side * scale + 0.5) / side) as [number, number];
    const placed = ([x, y]: nn.ImagePoint): nn.ImagePoint => [x * width, y * height];
    for (const [index, { points, outside, box }] of own.prompts.entries()) {
      const corners = box && ([...placed([box[0], box[1]]), ...placed([box[2], box[3]])] as const);
      const prompt = { points: points?.map(placed), outside: outside?.map(placed), box: corners };
      const { masks, scores } = noGrad(() => model.masks(embedding, prompt));
      expect(errorOf(masks, answers[`${at}.${index}.masks`]!)).toBeLessThan(CLOSE);
      expect(errorOf(scores, answers[`${at}.${index}.scores`]!)).toBeLessThan(CLOSE);
    }
  });
});

test.each([...cases.entries()])("masks in pixels of the image, model %d", async (at, own) => {
  const model = await load(`image.${at}`, own);
  const [objects, image] = [own.prompts, imageOf(own)];
  const several = await nn.segmentImage(model, image, { objects });
  const single = await nn.segmentImage(model, image, { objects, several: false });
  for (const [index] of objects.entries()) {
    const resized = answers[`${at}.${index}.resized`]!;
    const scores = Array.from(answers[`${at}.${index}.scores`]!.dataSync(), Number);
    const order = [...scores.keys()].slice(1).sort((a, b) => scores[b]! - scores[a]!);
    for (const [place, row] of [
      [single[index]![0]!, 0] as const,
      ...order.map((row, n) => [several[index]![n]!, row] as const),
    ]) {
      expect(place.score).toBeCloseTo(scores[row]!, 2); // pixels differ by a step of a byte
      const wanted = Array.from(resized.select(0, row).dataSync(), Number);
      const got = Array.from(place.mask.dataSync(), Number);
      expect(place.mask.shape).toEqual(own.image.slice(1));
      const largest = Math.max(...wanted.map(Math.abs));
      const wrong = got.filter(
        (value, pixel) => Math.abs(wanted[pixel]!) > 0.03 * largest && wanted[pixel]! > 0 !== (value === 1),
      );
      expect(wrong).toEqual([]);
    }
  }
});

test("prompts that do not fit the model are rejected", async () => {
  const model = await load("refusing", cases[0]!);
  const image = imageOf(cases[0]!);
  const coded = (code: string) => expect.objectContaining({ code });
  const call = (...values: unknown[]) => (nn.segmentImage as (...values: unknown[]) => Promise<unknown>)(...values);
  await expect(call(model, image)).rejects.toEqual(coded("noPrompts"));
  await expect(call(model, [image], { objects: [{ points: [[1, 1]] }] })).rejects.toEqual(coded("noPrompts"));
  await expect(call(model, image, { objects: [{}] })).rejects.toThrow("expected objects to be a list of prompts");
  await expect(call(model, image, { objects: [{ points: [[1, Number.NaN]] }] })).rejects.toThrow(
    "expected objects to be a list of prompts",
  );
  await expect(call(model, image, { objects: [{ box: [1, 2, 3] }] })).rejects.toThrow(
    "expected objects to be a list of prompts",
  );
});

test("gradients flow to all weights", async () => {
  const model = await load("gradients", cases[0]!);
  const embedding = model.forward(answers["0.pixels"]!);
  const { masks, scores } = model.masks(embedding, { points: [[1, 2]], outside: [[3, 1]], box: [0, 1, 4, 5] });
  const parts = [masks, scores, model.masks(embedding, { points: [[2, 2]] }).masks];
  backward(parts.map((part) => sum(part.mul(part)) as Tensor<"float32">).reduce((a, b) => a.add(b)));
  const missing = [...model.namedParameters()].filter(([, { grad }]) => grad === null);
  expect(missing.map(([name]) => name)).toEqual([]);
});
