/** Compares models with a result for each pixel with `transformers`: scripts/fixtures/models/dense.py. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../../src/core/paths.ts";
import { backward, io, mul, nn, noGrad, sum, type Tensor, zeros } from "../../../../src/index.ts";
import { Settings } from "../../../../src/nn/models/loading/settings.ts";
import { type DenseName, describedDense } from "../../../../src/nn/models/loading/vision/dense.ts";
import { testFolder } from "../../../support/folder.ts";
import { errorOf, weight } from "../weights.ts";

interface Case {
  readonly name: DenseName;
  readonly config: Readonly<Record<string, unknown>>;
  readonly image: readonly [number, number];
  readonly shapes: Readonly<Record<string, number[]>>;
}
type Model = nn.SemanticSegmenter | nn.DepthEstimator;

const CLOSE = 2e-5;
const fixture = join(packageRoot, "test", "fixtures", "vision", "dense");
const { cases }: { cases: Case[] } = JSON.parse(readFileSync(`${fixture}.json`, "utf8"));
const answers = io.loadSafetensors(`${fixture}.safetensors`);
const folder = testFolder("dense");
const named = cases.map((own, at) => [at, own.name, own] as const);
const [height, width] = [13, 17]; // the size of an image

/** The number of a weight, as the script fills it. */
const filled = (key: string, shape: readonly number[]): Tensor => {
  if (key.endsWith("num_batches_tracked")) return zeros([], { dtype: "int64" });
  const value = weight(key, shape);
  return key.endsWith("running_var") ? (value.add(1) as Tensor) : value;
};

async function load(name: string, own: Case): Promise<Model> {
  const path = folder.file(name);
  mkdirSync(path, { recursive: true });
  const write = (file: string, value: object) => writeFileSync(join(path, file), JSON.stringify(value));
  write("config.json", own.config);
  const size = { height: own.image[0], width: own.image[1] };
  write("preprocessor_config.json", { image_processor_type: "SegformerImageProcessor", size, do_normalize: false });
  const tensors = Object.entries(own.shapes).map(([key, shape]) => [key, filled(key, shape)] as const);
  await io.saveSafetensors(join(path, "model.safetensors"), Object.fromEntries(tensors));
  return (await nn.loadModel<Model>(path, { dtype: "float32" })).model;
}

const pixelsOf = ({ image }: Case): Tensor => weight("pixels", [2, 3, ...image]);

describe.each(named)("model %d, %s", (at, _, own) => {
  test("results and gradients", async () => {
    const model = await load(`${at}`, own);
    const result = model.forward(pixelsOf(own));
    const want = answers[`${at}.result`]!;
    expect(result.shape).toEqual(want.shape);
    expect(
      errorOf(
        noGrad(() => result),
        want,
      ),
    ).toBeLessThan(CLOSE);
    backward(sum(mul(result, weight("cotangent", result.shape))));
    const { places } = describedDense(own.name, new Settings(undefined, new Map(Object.entries(own.config))));
    const gradients = new Map(
      places.flatMap(({ path, names }) => {
        const layer = model.namedModules().get(path) as unknown as Record<"weight" | "bias", Tensor | null>;
        const named = names.flatMap((name) => [
          [name, layer.weight] as const,
          [`${name}.weight`, layer.weight] as const,
        ]);
        return [...named, ...names.map((name) => [`${name}.bias`, layer.bias] as const)];
      }),
    );
    const wanted = Object.keys(answers).filter((key) => key.startsWith(`${at}.gradient.`));
    expect(wanted.length).toBeGreaterThan(2);
    const wrong = wanted.flatMap((key) => {
      const error = errorOf(gradients.get(key.slice(`${at}.gradient.`.length))!.grad!, answers[key]!);
      return error < CLOSE ? [] : [`${key}: off by ${error}`];
    });
    expect(wrong).toEqual([]);
    const shapesOf = (of: Model) => [...of.namedParameters()].map(([key, { shape }]) => [key, shape]);
    expect(shapesOf(nn.createModel<Model>(own.config))).toEqual(shapesOf(model));
  });

  test("the result of an image has its size", async () => {
    const model = await load(`${at}`, own);
    // the processor returns the pixels of the fixture, for an image of another size
    const pixels = pixelsOf(own).slice({ dim: 0, end: 1 }) as Tensor;
    Object.defineProperty(model.processor!, "process", { value: () => pixels.mul(1) });
    const image = zeros([3, height, width], { dtype: "uint8" });
    const want = answers[`${at}.map`]!;
    if ("stages" in model) {
      const { map, segments } = await nn.segmentImage(model, image);
      expect([map.shape, Array.from(map.dataSync())]).toEqual([[height, width], Array.from(want.dataSync(), Number)]);
      expect(segments.reduce((total, { share }) => total + share, 0)).toBeCloseTo(1, 6);
      expect(["sky", "road", "tree"]).toContain(segments[0]!.label);
      expect(await nn.segmentImage(model, [image, image])).toHaveLength(2);
    } else {
      const depth = await nn.estimateDepth(model, image);
      expect(depth.shape).toEqual([height, width]);
      expect(errorOf(depth, want)).toBeLessThan(CLOSE);
      expect(await nn.estimateDepth(model, [image, image], { batch: 1 })).toHaveLength(2);
    }
  });
});

test("settings that are rejected", async () => {
  const of = (name: DenseName) => cases.find((own) => own.name === name)!;
  const changed = (own: Case, changes: object): Case => ({ ...own, config: { ...own.config, ...changes } });
  const [segformer, depth] = [of("segformer"), of("depth_anything")];
  const backbone = depth.config["backbone_config"] as object;
  const rejected = (own: Case, message: string) => expect(load("rejected", own)).rejects.toThrow(message);
  await rejected(changed(segformer, { unknown: 1 }), "unknown is not a setting of segformer");
  await rejected(changed(segformer, { architectures: ["SegformerModel"] }), "ForSemanticSegmentation");
  await rejected(changed(segformer, { depths: [1] }), "expected depths to be a list of num_encoder_blocks");
  await rejected(changed(depth, { head_in_index: 0 }), "expected head_in_index to be -1");
  await rejected(changed(depth, { backbone_config: { ...backbone, model_type: "dinov3_vit" } }), '"dinov2"');
  await rejected(changed(depth, { backbone_config: { ...backbone, out_indices: [2, 1] } }), "an ascending list");
});
