/** Compares models of detection, segmentation and depth with `transformers`: scripts/fixtures/models/dense.py. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../../src/core/paths.ts";
import { backward, cat, io, mul, nn, noGrad, sum, type Tensor, zeros } from "../../../../src/index.ts";
import { Settings } from "../../../../src/nn/models/loading/settings.ts";
import { describedImageModel, type ImageModelName } from "../../../../src/nn/models/loading/vision/image_models.ts";
import { anchorsOf } from "../../../../src/nn/models/vision/rt_detr/anchors.ts";
import { testFolder } from "../../../support/folder.ts";
import { errorOf, weight } from "../weights.ts";

interface Case {
  readonly name: ImageModelName;
  readonly config: Readonly<Record<string, unknown>>;
  readonly image: readonly [number, number];
  readonly shapes: Readonly<Record<string, number[]>>;
}
type Model = nn.ImageClassifier | nn.SemanticSegmenter | nn.DepthEstimator | nn.Detr | nn.RtDetr;

const CLOSE = 2e-5;
const CLOSE_STATES = 1e-5;
/** Gradients of float32 pass through up to 60 layers. */
const CLOSE_GRADIENT = 1e-4;
const fixture = join(packageRoot, "test", "fixtures", "vision", "dense");
const { cases }: { cases: Case[] } = JSON.parse(readFileSync(`${fixture}.json`, "utf8"));
const answers = io.loadSafetensors(`${fixture}.safetensors`);
const folder = testFolder("dense");
const named = cases.map((own, at) => [at, own.name, own] as const);
const [height, width] = [13, 17]; // the size of an image

/** A weight, filled with the same numbers as by the script. */
const filled = (key: string, shape: readonly number[]): Tensor => {
  if (key.endsWith("num_batches_tracked")) return zeros([], { dtype: "int64" });
  const value = weight(key, shape);
  return key.endsWith("running_var") ? (value.add(1) as Tensor) : value;
};

/** The scores and the boxes of a detector, or the result of another model. */
function resultOf(model: Model, pixels: Tensor): Tensor {
  if (!("labelHead" in model)) return model.forward(pixels);
  const { logits, boxes } = model.forward(pixels);
  return cat([logits, boxes], -1);
}

async function load(name: string, own: Case, rename = (key: string): string => key): Promise<Model> {
  const path = folder.file(name);
  mkdirSync(path, { recursive: true });
  const write = (file: string, value: object) => writeFileSync(join(path, file), JSON.stringify(value));
  write("config.json", own.config);
  const size = { height: own.image[0], width: own.image[1] };
  write("preprocessor_config.json", { image_processor_type: "SegformerImageProcessor", size, do_normalize: false });
  const tensors = Object.entries(own.shapes).map(([key, shape]) => [rename(key), filled(key, shape)] as const);
  await io.saveSafetensors(join(path, "model.safetensors"), Object.fromEntries(tensors));
  return (await nn.loadModel<Model>(path, { dtype: "float32" })).model;
}

const isClassifier = ({ config }: Case): boolean => `${config["architectures"]}`.endsWith("ForImageClassification");

const pixelsOf = ({ image }: Case): Tensor => weight("pixels", [2, 3, ...image]);

describe.each(named)("vision models with dense outputs: model %d, %s", (at, _, own) => {
  test("results and gradients equal those of transformers", async () => {
    const model = await load(`${at}`, own);
    const result = resultOf(model, pixelsOf(own));
    const want = answers[`${at}.result`];
    expect(result.shape).toEqual(want.shape);
    expect(
      errorOf(
        noGrad(() => result),
        want,
      ),
    ).toBeLessThan(CLOSE);
    const states = answers[`${at}.states`];
    if (states && "network" in model) {
      const planes = noGrad(() => model.network.forward(pixelsOf(own)));
      const tokens = planes.flatten(2).transpose(1, 2) as Tensor;
      expect(tokens.shape).toEqual(states.shape);
      expect(errorOf(tokens, states)).toBeLessThan(CLOSE_STATES);
    }
    backward(sum(mul(result, weight("cotangent", result.shape))));
    const { places } = describedImageModel(own.name, new Settings(undefined, new Map(Object.entries(own.config))));
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
      const error = errorOf(gradients.get(key.slice(`${at}.gradient.`.length))!.grad!, answers[key]);
      return error < CLOSE_GRADIENT ? [] : [`${key}: off by ${error}`];
    });
    expect(wrong).toEqual([]);
    const shapesOf = (of: Model) => [...of.namedParameters()].map(([key, { shape }]) => [key, shape]);
    expect(shapesOf(nn.createModel<Model>(own.config))).toEqual(shapesOf(model));
  });

  if (own.name.endsWith("detr") || isClassifier(own)) return;

  test("maps and masks have the size of the original image", async () => {
    const model = await load(`${at}`, own);
    // the processor returns the pixels of the fixture, for an image of another size
    const pixels = pixelsOf(own).slice({ dim: 0, end: 1 }) as Tensor;
    Object.defineProperty(model.processor!, "process", { value: () => pixels.mul(1) });
    const image = zeros([3, height, width], { dtype: "uint8" });
    const want = answers[`${at}.map`];
    if ("stages" in model) {
      const { map, segments } = await nn.segmentImage(model, image);
      expect([map.shape, Array.from(map.dataSync())]).toEqual([[height, width], Array.from(want.dataSync(), Number)]);
      expect(segments.reduce((total, { share }) => total + share, 0)).toBeCloseTo(1, 6);
      expect(["sky", "road", "tree"]).toContain(segments[0].label);
      expect(await nn.segmentImage(model, [image, image])).toHaveLength(2);
    } else if ("levels" in model) {
      const depth = await nn.estimateDepth(model, image);
      expect(depth.shape).toEqual([height, width]);
      expect(errorOf(depth, want)).toBeLessThan(CLOSE);
      expect(await nn.estimateDepth(model, [image, image], { batch: 1 })).toHaveLength(2);
    }
  });
});

const detr = cases.findIndex(({ name, config }) => {
  const { layer_type: layer, downsample_in_first_stage: first } = (config["backbone_config"] ?? {}) as Record<
    string,
    unknown
  >;
  return name === "detr" && layer === "bottleneck" && first === false;
});

test("networks of timm load by timm's names, with timm's classifier", async () => {
  const own = cases[detr];
  const timm = (key: string) =>
    key
      .replace("embedder.embedder.convolution", "conv1")
      .replace("embedder.embedder.normalization", "bn1")
      .replace(/encoder\.stages\.(\d+)\.layers\.(\d+)/, (_, stage, index) => `layer${Number(stage) + 1}.${index}`)
      .replace(/layer\.(\d+)\.convolution/, (_, at) => `conv${Number(at) + 1}`)
      .replace(/layer\.(\d+)\.normalization/, (_, at) => `bn${Number(at) + 1}`)
      .replace("shortcut.convolution", "downsample.0")
      .replace("shortcut.normalization", "downsample.1");
  const renamed = Object.keys(own.shapes).map(timm);
  // the file of facebook/detr-resnet-50 has the same names
  for (const end of ["conv1.weight", "bn1.running_var", "layer1.0.conv2.weight", "layer1.0.bn3.bias"])
    expect(renamed).toContain(`model.backbone.conv_encoder.model.${end}`);
  const shapes = { ...own.shapes, "model.backbone.conv_encoder.model.fc.weight": [2, 2] };
  const model = await load("timm", { ...own, shapes }, timm);
  expect(
    errorOf(
      noGrad(() => resultOf(model, pixelsOf(own))),
      answers[`${detr}.result`],
    ),
  ).toBeLessThan(CLOSE);
});

test("the name of a timm network determines its sizes", () => {
  const sizes = { encoder_layers: 1, decoder_layers: 1, d_model: 4, encoder_attention_heads: 1 };
  const small = { ...sizes, decoder_attention_heads: 1, encoder_ffn_dim: 4, decoder_ffn_dim: 4, num_queries: 2 };
  const describe = (more: object) => {
    const settings = new Settings(undefined, new Map(Object.entries({ model_type: "detr", ...small, ...more })));
    return describedImageModel("detr", settings).places.filter(({ path }) => path.endsWith("convolution")).length;
  };
  // torchvision's ResNet-50 has 53 convolutions, and ResNet-101 104
  expect(describe({ backbone: "resnet50", use_timm_backbone: true })).toBe(53);
  expect(describe({ backbone_config: { model_type: "timm_backbone", backbone: "resnet101" } })).toBe(104);
  expect(() => describe({ backbone: "vgg" })).toThrow("expected backbone to be one of resnet18");
});

test("objects of a detector have their names and boxes", async () => {
  const own = cases[detr];
  const model = (await load("objects", own)) as nn.Detr;
  const pixels = pixelsOf(own).slice({ dim: 0, end: 1 }) as Tensor;
  Object.defineProperty(model.processor!, "process", { value: () => pixels.mul(1) });
  const [objects] = await nn.detectObjects(model, [zeros([3, height, width], { dtype: "uint8" })], { threshold: 0 });
  const rows = (answers[`${detr}.result`].toArray() as number[][][])[0];
  expect(objects).toHaveLength(rows.length);
  const wanted = rows.map((row) => {
    const [scores, [x, y, across, down]] = [row.slice(0, 4), row.slice(4) as [number, number, number, number]];
    const powers = scores.map(Math.exp);
    const best = Math.max(...powers.slice(0, 3));
    const total = powers.reduce((sum, each) => sum + each, 0);
    return {
      label: ["sky", "road", "tree"][powers.indexOf(best)],
      score: best / total,
      box: { left: (x - across / 2) * width, top: (y - down / 2) * height, right: (x + across / 2) * width },
    };
  });
  wanted.sort((a, b) => b.score - a.score);
  for (const [at, { label, score, box }] of wanted.entries()) {
    expect(objects[at].label).toBe(label);
    expect(objects[at].score).toBeCloseTo(score, 4);
    for (const side of ["left", "top", "right"] as const) expect(objects[at].box[side]).toBeCloseTo(box[side], 3);
  }
});

test("RT-DETR's objects are the best pairs of a query and a label", async () => {
  const at = cases.findIndex(({ name }) => name === "rt_detr");
  const own = cases[at];
  const model = (await load("pairs", own)) as nn.RtDetr;
  const pixels = pixelsOf(own).slice({ dim: 0, end: 1 }) as Tensor;
  Object.defineProperty(model.processor!, "process", { value: () => pixels.mul(1) });
  const [objects] = await nn.detectObjects(model, [zeros([3, height, width], { dtype: "uint8" })], { threshold: 0 });
  const rows = (answers[`${at}.result`].toArray() as number[][][])[0];
  const pairs = rows.flatMap((row) => {
    const [x, , across] = row.slice(3) as [number, number, number, number];
    return row.slice(0, 3).map((score, label) => ({
      label: ["sky", "road", "tree"][label],
      score: 1 / (1 + Math.exp(-score)),
      left: (x - across / 2) * width,
    }));
  });
  const wanted = pairs.sort((a, b) => b.score - a.score).slice(0, rows.length);
  expect(objects.map(({ label }) => label)).toEqual(wanted.map(({ label }) => label));
  for (const [index, { score, left }] of wanted.entries()) {
    expect(objects[index].score).toBeCloseTo(score, 4);
    expect(objects[index].box.left).toBeCloseTo(left, 3);
  }
});

test("boxes near the border of RT-DETR's places are not used", () => {
  const { logits, valid } = anchorsOf([[1, 60]]);
  // the centers of the first and last of 60 places are nearer to the border than 0.01
  expect([...valid].map((flag, at) => (flag ? -1 : at)).filter((at) => at >= 0)).toEqual([0, 59]);
  expect(logits[0]).toBe(3.4028234663852886e38);
  expect(Array.from(logits.subarray(4, 8), (x) => 1 / (1 + Math.exp(-x)))).toEqual(
    [1.5 / 60, 0.5, 0.05, 0.05].map((value) => expect.closeTo(value, 6)),
  );
});

test.each(["resnet", "segformer", "convnext", "convnextv2", "swin"] as const)(
  "a folder of %s classifies images",
  async (name) => {
    const own = cases.find((each) => each.name === name && isClassifier(each))!;
    const model = (await load(`classifier.${name}`, own)) as nn.ImageClassifier;
    const pixels = pixelsOf(own);
    Object.defineProperty(model.processor!, "process", { value: () => pixels.narrow(0, 0, 1).mul(1) });
    const image = zeros([3, height, width], { dtype: "uint8" });
    const [labels] = await nn.classifyImages(model, [image]);
    const names: unknown[] = Object.values(own.config["id2label"] as object);
    const scores = Array.from(answers[`${cases.indexOf(own)}.result`].narrow(0, 0, 1).dataSync(), Number);
    expect<unknown>(labels[0].label).toBe(names[scores.indexOf(Math.max(...scores))]);
    expect(labels.reduce((sum, { score }) => sum + score, 0)).toBeCloseTo(1, 5);
    // without the head, the same folder gives vectors
    const title = `${own.config["architectures"]}`.replace("ForImageClassification", "Model");
    const shapes = Object.fromEntries(
      Object.entries(own.shapes).flatMap(([key, shape]) =>
        key.startsWith("classifier") ? [] : [[key.slice(key.indexOf(".") + 1), shape]],
      ),
    );
    const bare = { ...own, shapes, config: { ...own.config, architectures: [title] } };
    const vectors = (await load(`bare.${name}`, bare)) as nn.ImageClassifier;
    expect(vectors.forward(pixels).shape).toEqual([2, model.description.width]);
    Object.defineProperty(vectors.processor!, "process", { value: () => pixels.narrow(0, 0, 1).mul(1) });
    await expect(nn.classifyImages(vectors, [image])).rejects.toThrow("got one without a head");
    expect((await nn.embedImages(vectors, [image])).shape).toEqual([1, model.description.width]);
  },
);

test("unsupported settings are rejected", async () => {
  const of = (name: ImageModelName) => cases.find((own) => own.name === name)!;
  const changed = (own: Case, changes: object): Case => ({ ...own, config: { ...own.config, ...changes } });
  const [segformer, depth] = [of("segformer"), of("depth_anything")];
  const backbone = depth.config["backbone_config"] as object;
  const rejected = (own: Case, message: string) => expect(load("rejected", own)).rejects.toThrow(message);
  await rejected(changed(segformer, { unknown: 1 }), "unknown is not a setting of segformer");
  await rejected(changed(segformer, { architectures: ["SegformerForDepth"] }), "ForSemanticSegmentation");
  await rejected(changed(of("convnext"), { num_stages: 9 }), "one for each of num_stages (9)");
  await rejected(changed(of("convnextv2"), { layer_scale_init_value: 1 }), "layer_scale_init_value is not a setting");
  await rejected(changed(of("resnet"), { architectures: ["ResNetBackbone"] }), "ForImageClassification or Model");
  await rejected(changed(segformer, { depths: [1] }), "expected depths to be a list of num_encoder_blocks");
  const swin = of("swin");
  await rejected(changed(swin, { window: 7 }), "window is not a setting of swin");
  await rejected(changed(swin, { use_absolute_embeddings: true }), "expected use_absolute_embeddings to be false");
  await rejected(changed(swin, { num_heads: [1] }), "expected num_heads to be divisors of embed_dim");
  await rejected(changed(swin, { depths: [] }), "expected depths to be a list of whole numbers above 0");
  await rejected(changed(swin, { architectures: ["SwinBackbone"] }), "ForImageClassification or Model");
  const rtDetr = of("rt_detr");
  await rejected(changed(rtDetr, { eval_size: [640, 640] }), "eval_size is not a supported setting of rt_detr");
  await rejected(changed(rtDetr, { num_feature_levels: 4 }), "expected num_feature_levels to be");
  await rejected(changed(rtDetr, { learn_initial_query: true }), "learn_initial_query is not a supported setting");
  await rejected(changed(cases[detr], { dilation: true }), "expected dilation to be false");
  await rejected(changed(cases[detr], { position_embedding_type: "learned" }), 'to be "sine"');
  await rejected(changed(cases[detr], { backbone_config: { model_type: "swin" } }), '"resnet" or "timm_backbone"');
  await rejected(changed(depth, { head_in_index: 0 }), "expected head_in_index to be -1");
  await rejected(changed(depth, { backbone_config: { ...backbone, model_type: "dinov3_vit" } }), '"dinov2"');
  await rejected(changed(depth, { backbone_config: { ...backbone, out_indices: [2, 1] } }), "an ascending list");
});

test("images in which Swin's last window has no room are rejected", () => {
  const config = { model_type: "swin", embed_dim: 4, depths: [1, 1], num_heads: [1, 1], window_size: 3, patch_size: 2 };
  const model = nn.createModel<nn.ImageClassifier>(config);
  // 9 pixels have 5 patches, and 3 places in the last stage
  expect(model.embedImages(zeros([1, 3, 9, 9])).shape).toEqual([1, 8]);
  expect(() => model.embedImages(zeros([1, 3, 9, 8]))).toThrow("at least 9 x 9 pixels");
});

test("Swin's files with tables of constants and a mask token load", async () => {
  const own = cases.find(({ name }) => name === "swin")!;
  const constants = { "swin.encoder.layers.0.blocks.0.attention.self.relative_position_index": [4, 4] };
  const shapes = { ...own.shapes, ...constants, "swin.embeddings.mask_token": [1, 1, 4] };
  const want = answers[`${cases.indexOf(own)}.result`];
  const model = await load("constants", { ...own, shapes });
  expect(errorOf(resultOf(model, pixelsOf(own)), want)).toBeLessThan(CLOSE);
});
