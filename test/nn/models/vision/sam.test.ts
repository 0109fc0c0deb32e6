/** Compares SAM and SAM 2 with `transformers`: scripts/fixtures/models/masks_of_prompts.py. */
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
const fixture = join(packageRoot, "test", "fixtures", "vision");
const folder = testFolder("sam");
const families = (["sam", "sam2"] as const).map((family) => ({
  family,
  cases: JSON.parse(readFileSync(join(fixture, `${family}.json`), "utf8")) as readonly Case[],
  answers: io.loadSafetensors(join(fixture, `${family}.safetensors`)),
}));
const { cases } = families[0];

type Model = nn.Sam | nn.Sam2;

async function load<M extends Model = nn.Sam>(name: string, { config, shapes, processor }: Case): Promise<M> {
  const path = folder.file(name);
  mkdirSync(path, { recursive: true });
  const write = (file: string, value: object) => writeFileSync(join(path, file), JSON.stringify(value));
  write("config.json", config);
  write("preprocessor_config.json", {
    image_processor_type: config["model_type"] === "sam" ? "SamImageProcessor" : "Sam2ImageProcessorFast",
    ...processor,
  });
  const tensors = Object.entries(shapes).map(([key, shape]) => [key, weight(key, shape)] as const);
  await io.saveSafetensors(join(path, "model.safetensors"), Object.fromEntries(tensors));
  return (await nn.loadModel<M>(path, { dtype: "float32" })).model;
}

function imageOf({ image }: Case): Tensor {
  const values = Array.from(weight("image", image).dataSync(), Number);
  return tensor(
    values.map((value) => Math.floor((value + 0.5) * 256)),
    { shape: [...image], dtype: "uint8" },
  );
}

/** Computes the features of pixels, and returns a function that computes the masks of a prompt. */
function masksOf(model: Model, pixels: Tensor) {
  if (!("pointFrequencies" in model)) {
    const embedding = model.forward(pixels);
    return { features: [embedding], masks: (prompt: nn.SamPrompt) => model.masks(embedding, prompt) };
  }
  const found = model.forward(pixels);
  return { features: [found.embedding, ...found.finer], masks: (prompt: nn.SamPrompt) => model.masks(found, prompt) };
}

describe.each(families)(
  "models of the family $family segment images as in transformers",
  ({ family, cases, answers }) => {
    describe.each([...cases.entries()])("model %d segments images as in transformers", (at, own) => {
      const loaded = load<Model>(`${family}.${at}`, own);

      test("pixels and embeddings equal those of transformers", async () => {
        const model = await loaded;
        const pixels = answers[`${at}.pixels`];
        // one step of a byte, or two: SAM 2's processor resizes with torchvision
        expect(errorOf(model.processor!.process(imageOf(own)), pixels)).toBeLessThan(family === "sam" ? 1e-2 : 2e-2);
        const { features } = noGrad(() => masksOf(model, pixels));
        for (const [index, name] of ["embedding", "finest", "fine"].slice(0, features.length).entries())
          expect(errorOf(features[index], answers[`${at}.${name}`])).toBeLessThan(CLOSE);
      });

      test("masks and scores equal those of transformers", async () => {
        const model = await loaded;
        const { image } = model.description;
        const sides = own.image.slice(1);
        const scale = image / Math.max(...sides);
        const resized = family === "sam" ? sides.map((side) => Math.floor(side * scale + 0.5)) : [image, image];
        const [height, width] = sides.map((side, axis) => resized[axis] / side) as [number, number];
        const placed = ([x, y]: nn.ImagePoint): nn.ImagePoint => [x * width, y * height];
        const { masks } = noGrad(() => masksOf(model, answers[`${at}.pixels`]));
        for (const [index, { points, outside, box }] of own.prompts.entries()) {
          const corners = box && ([...placed([box[0], box[1]]), ...placed([box[2], box[3]])] as const);
          const found = noGrad(() =>
            masks({ points: points?.map(placed), outside: outside?.map(placed), box: corners }),
          );
          for (const name of ["masks", "scores", ...(family === "sam" ? [] : (["presence"] as const))] as const)
            expect(errorOf(found[name as "masks"], answers[`${at}.${index}.${name}`])).toBeLessThan(CLOSE);
        }
      });
    });

    test.each([...cases.entries()])("masks equal transformers' in pixels of the image, model %d", async (at, own) => {
      const model = await load<Model>(`${family}.image.${at}`, own);
      const [objects, image] = [own.prompts, imageOf(own)];
      const several = await nn.segmentImage(model, image, { objects });
      const single = await nn.segmentImage(model, image, { objects, several: false });
      for (const [index] of objects.entries()) {
        const resized = answers[`${at}.${index}.resized`];
        const scores = Array.from(answers[`${at}.${index}.scores`].dataSync(), Number);
        const order = [...scores.keys()].slice(1).sort((a, b) => scores[b] - scores[a]);
        const chosen = answers[`${at}.${index}.single`]?.dataSync()[0];
        const first = chosen === undefined ? 0 : scores.indexOf(Number(chosen));
        for (const [place, row] of [
          [single[index][0], first] as const,
          ...order.map((row, n) => [several[index][n], row] as const),
        ]) {
          expect(place.score).toBeCloseTo(scores[row], 2); // pixels differ by a step of a byte
          const wanted = Array.from(resized.select(0, row).dataSync(), Number);
          const got = Array.from(place.mask.dataSync(), Number);
          expect(place.mask.shape).toEqual(own.image.slice(1));
          const largest = Math.max(...wanted.map(Math.abs));
          const wrong = got.filter(
            (value, pixel) => Math.abs(wanted[pixel]) > 0.03 * largest && wanted[pixel] > 0 !== (value === 1),
          );
          expect(wrong).toEqual([]);
        }
      }
    });

    test("gradients flow to all weights", async () => {
      const model = await load<Model>(`${family}.gradients`, cases[0]);
      const { masks } = masksOf(model, answers["0.pixels"]);
      const both = [masks({ points: [[1, 2]], outside: [[3, 1]], box: [0, 1, 4, 5] }), masks({ points: [[2, 2]] })];
      const parts = both.flatMap((found) => [found.masks, found.scores, ...(found.presence ? [found.presence] : [])]);
      backward(parts.map((part) => sum(part.mul(part)) as Tensor<"float32">).reduce((a, b) => a.add(b)));
      const missing = [...model.namedParameters()].filter(([, { grad }]) => grad === null);
      expect(missing.map(([name]) => name)).toEqual([]);
    });
  },
);

test("prompts that do not fit the model are rejected", async () => {
  const model = await load("refusing", cases[0]);
  const image = imageOf(cases[0]);
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

test("SAM 2 for videos loads without its memory; settings that do not fit are rejected", async () => {
  const [own, answers] = [families[1].cases[0], families[1].answers];
  const ofVideos = { model_type: "sam2_video", architectures: ["Sam2VideoModel"], num_maskmem: 7, rope_parameters: {} };
  const shapes = { ...own.shapes, "memory_encoder.projection.weight": [2, 2], no_object_pointer: [1, 2] };
  const model = await load<nn.Sam2>("videos", { ...own, config: { ...own.config, ...ofVideos }, shapes });
  expect(errorOf(noGrad(() => model.forward(answers["0.pixels"])).embedding, answers["0.embedding"])).toBeLessThan(
    CLOSE,
  );
  const vision = own.config["vision_config"] as Readonly<Record<string, object>>;
  const withBackbone = (backbone: object) => ({
    ...own.config,
    vision_config: { ...vision, backbone_config: { ...vision["backbone_config"], ...backbone } },
  });
  for (const [config, problem] of [
    [{ ...own.config, mask_decoder_config: { hidden_size: 24 } }, "mask_decoder_config.hidden_size to be"],
    [{ ...own.config, vision_config: { ...vision, num_feature_levels: 2 } }, "num_feature_levels to be 3"],
    [{ ...own.config, vision_config: { ...vision, drop_path: 1 } }, "vision_config.drop_path is not a setting of sam2"],
    [withBackbone({ query_stride: [2, 1] }), "query_stride to be two equal numbers"],
    [withBackbone({ num_query_pool_stages: 0 }), "num_query_pool_stages to be at least 2"],
    [withBackbone({ window_size_per_stage: [3, 3, 3, 3] }), "window_size_per_stage"],
  ] as const)
    await expect(load(`refused ${problem}`, { ...own, config })).rejects.toThrow(problem);
});
