/** Converts a `config.json` of an image encoder to a description. */
import { numberIn } from "../../../../core/values.ts";
import type { FeedForwardDescription, NormDescription } from "../../decoder/description.ts";
import type { EncoderDescription, EncoderLayerDescription } from "../../encoder/description.ts";
import type { EncoderLabels } from "../../encoder/labels.ts";
import type {
  DetectorDescription,
  DualDescription,
  PatchesDescription,
  TextPooling,
  VisionDescription,
  VisionHead,
  VisionPooling,
} from "../../vision/description.ts";
import { gridOf } from "../../vision/embeddings.ts";
import { checkKeys, hasNoEffectAnywhere } from "../config_fields.ts";
import { encoderActivation } from "../encoder/activations.ts";
import { namesOf, scoresOf } from "../encoder/heads.ts";
import type { Settings } from "../settings.ts";
import {
  type DualName,
  dualArchitectures,
  type VisionArchitecture,
  type VisionName,
  visionNotes,
  visionRow,
} from "./architectures.ts";

/** Far more layers than any model has. */
const MOST_LAYERS = 65_536;

/** The image encoder that a file describes. */
export interface DescribedVision {
  readonly name: VisionName;
  readonly description: VisionDescription;
  readonly labels: EncoderLabels | undefined;
}

/** @throws {ArgumentError} `unsupportedConfig` for unknown keys, naming them. */
function completed(name: string, fields: Readonly<Record<string, unknown>>, config: Settings): Settings {
  const isKnown = (key: string) => Object.hasOwn(fields, key) || visionNotes.has(key) || hasNoEffectAnywhere(key);
  checkKeys(config, isKnown, `is not a setting of ${name}`);
  const given = config.names.flatMap((key) => (config.get(key) === undefined ? [] : [[key, config.get(key)] as const]));
  return config.with(new Map([...Object.entries(fields), ...given]));
}

/**
 * Returns the description of an image encoder from the contents of a `config.json`.
 *
 * @param isThere whether a checkpoint has a weight: some have no pooling layer
 *
 * @throws {ArgumentError} `unsupportedConfig` and other codes for unsupported settings, which the error names.
 */
export function describeVision(
  name: VisionName,
  settings: Settings,
  isThere: (weight: RegExp) => boolean,
): DescribedVision {
  const row = visionRow(name);
  const config = completed(name, row.fields, settings);
  const className = classOf(config);
  const head = className.includes("ForImageClassification") ? headOf(row, config, className) : undefined;
  // A classifier of ViT has no pooling layer.
  const description = bodyOf(name, config, (weight) => head === undefined && isThere(weight));
  const projection = className.endsWith("WithProjection") ? config.whole("projection_dim") : undefined;
  return { name, description: { ...description, head, projection }, labels: head && labelsOf(config, head) };
}

/** @throws {ArgumentError} `unsupportedHead` for the class of any other head. */
function classOf(config: Settings): string {
  const list = config.get("architectures") ?? [];
  if (!Array.isArray(list) || list.some((item) => typeof item !== "string"))
    throw config.wrong("architectures", "a list of names", list);
  const className: string = list[0] ?? "Model";
  if (/(Model|ModelWithProjection|ForImageClassification(WithTeacher)?)$/.test(className)) return className;
  throw config.refused(
    "unsupportedHead",
    `expected architectures to end with Model, ModelWithProjection or ForImageClassification, got "${className}"`,
  );
}

function headOf({ classified }: VisionArchitecture, config: Settings, className: string): VisionHead {
  const of = className.endsWith("WithTeacher") ? "teacher" : (classified ?? "first");
  return { outputs: namesOf(config).length, of };
}

const labelsOf = (config: Settings, { outputs }: VisionHead): EncoderLabels => ({
  names: namesOf(config),
  scores: scoresOf(config, outputs),
  relevance: "sigmoid",
});

const vitNorm = (config: Settings): NormDescription => ({
  kind: "layerNorm",
  eps: config.positive("layer_norm_eps"),
  bias: true,
});

/** Returns the kind of norm. @throws {FileFormatError} for an unknown kind. */
function normOf({ configuredNorms }: VisionArchitecture, config: Settings): NormDescription {
  const kind = configuredNorms ? config.textIfAny("norm_type") : "layer_norm";
  if (kind === "layer_norm") return vitNorm(config);
  if (kind === "rms_norm") return { kind: "rmsNorm", eps: config.positive("layer_norm_eps") };
  throw config.wrong("norm_type", "layer_norm or rms_norm", kind);
}

/**
 * Returns the input of the final norm. @throws {ArgumentError} `unsupportedConfig` for a norm of queries and keys, or
 * patches without positions.
 */
function finalNormOf({ configuredNorms, configuredDistances, pooledNorm }: VisionArchitecture, config: Settings) {
  if (configuredDistances) return config.flag("use_mean_pooling") ? "pooled" : "states";
  if (!configuredNorms) return pooledNorm ? "pooled" : "states";
  for (const [key, expected] of [["use_qk_norm", false] as const, ["use_absolute_position_embeddings", true] as const])
    if (config.flag(key) !== expected)
      throw config.refused("unsupportedConfig", `expected ${key} to be ${expected}, got ${!expected}`);
  return config.flag("use_mean_pooling") ? "none" : "states";
}

function bodyOf(name: VisionName, config: Settings, isThere: (weight: RegExp) => boolean): VisionDescription {
  const row = visionRow(name);
  const width = config.whole("hidden_size");
  return {
    architecture: name,
    width,
    norm: normOf(row, config),
    patches: patchesOf(row, config),
    embeddingNorm: row.pooledNorm === true,
    finalNorm: finalNormOf(row, config),
    layers: layersOf(row, config),
    midPositions: row.tokens === "detection" && config.flag("use_mid_position_embeddings"),
    pooling: poolingOf(row, config, isThere),
    distances: row.configuredDistances ? distancesOf(config) : undefined,
  };
}

/**
 * Returns which blocks have biases of distances.
 *
 * @throws {ArgumentError} for two kinds, or grids with unequal sides
 */
function distancesOf(config: Settings): VisionDescription["distances"] {
  const [each, shared] = ["use_relative_position_bias", "use_shared_relative_position_bias"].map((key) =>
    config.flag(key),
  );
  if (!each && !shared) return undefined;
  if (each && shared) throw config.wrong("use_shared_relative_position_bias", "false beside one for each layer", true);
  const [rows, columns] = gridOf({ size: pairOf(config, "patch_size") }, pairOf(config, "image_size"));
  if (rows !== columns) throw config.wrong("image_size", "a square, for relative positions", config.get("image_size"));
  return each ? "each" : "shared";
}

/** Returns a field that is one number or a list of two. */
function pairOf(config: Settings, key: string): readonly [height: number, width: number] {
  const value = config.get(key);
  const pair = Array.isArray(value) ? value : [value, value];
  const isSize = (item: unknown) => Number.isInteger(item) && numberIn(item) > 0 && numberIn(item) < 2 ** 16;
  if (pair.length === 2 && pair.every(isSize)) return [pair[0], pair[1]];
  throw config.wrong(key, "a whole number above 0, or a list of two", value);
}

function patchesOf(row: VisionArchitecture, config: Settings): PatchesDescription {
  const { tokens, patches, positions = { mode: "bicubic", antialias: false } } = row;
  const size = pairOf(config, "patch_size");
  const image = config.names.includes("num_patches") ? squareOf(config, size) : pairOf(config, "image_size");
  if (image.some((side, axis) => side < size[axis]))
    throw config.wrong("image_size", `at least patch_size (${size.join(" x ")})`, config.get("image_size"));
  return {
    channels: config.whole("num_channels"),
    size,
    image,
    bias: patches !== "noBias",
    flat: patches === "flat",
    classToken: tokens !== "none",
    distillationToken: tokens === "distillation",
    detectionTokens: tokens === "detection" ? config.whole("num_detection_tokens") : 0,
    registers: tokens === "registers" ? config.whole("num_register_tokens", 0) : 0,
    positions:
      row.configuredDistances && !config.flag("use_absolute_position_embeddings")
        ? { kind: "none" }
        : positions === "rotary"
          ? { kind: "rotary", base: config.positive("rope_theta") }
          : { kind: "learned", ...positions },
  };
}

/** Returns the size of a square image with `num_patches` patches. */
function squareOf(config: Settings, size: readonly [number, number]): readonly [number, number] {
  const count = config.whole("num_patches");
  const side = Math.floor(Math.sqrt(count));
  if (side * side !== count) throw config.wrong("num_patches", "a square", count);
  return [side * size[0], side * size[1]];
}

interface Sizes {
  readonly width: number;
  readonly heads: number;
  readonly count: number;
}

function sizesOf(config: Settings): Sizes {
  const [width, heads] = [config.whole("hidden_size"), config.whole("num_attention_heads")];
  const count = config.whole("num_hidden_layers", 0);
  if (count > MOST_LAYERS) throw config.wrong("num_hidden_layers", `at most ${MOST_LAYERS}`, count);
  if (width % heads !== 0) throw config.wrong("hidden_size", "a multiple of num_attention_heads", width);
  return { width, heads, count };
}

function layersOf(row: VisionArchitecture, config: Settings): EncoderLayerDescription[] {
  const { width, heads, count } = sizesOf(config);
  const headWidth = width / heads;
  if (row.positions === "rotary" && headWidth % 4 !== 0)
    throw config.wrong("num_attention_heads", "such that the size of a head is a multiple of 4", heads);
  const flag = (key: string) => key === "" || (key !== "none" && config.flag(key));
  const biases = row.biases && {
    query: flag(row.biases.query),
    key: flag(row.biases.key),
    value: flag(row.biases.value),
    output: flag(row.biases.output),
  };
  const attention = { heads, headWidth, bias: true, biases, fused: false };
  const layerScale = row.layerScale === "configured" ? config.number("layer_scale_init_value") > 0 : row.layerScale;
  const layer = { attentionNorm: true, attention, feedForward: feedForwardOf(row, config), layerScale };
  return Array.from({ length: count }, () => layer);
}

function feedForwardOf({ feedForward }: VisionArchitecture, config: Settings): FeedForwardDescription {
  if (feedForward === "ratio") {
    const hidden = Math.trunc(config.whole("hidden_size") * config.positive("mlp_ratio"));
    if (!config.flag("use_swiglu_ffn")) return mlpOf(config, hidden);
    // two thirds, rounded up to a multiple of 8
    const rounded = Math.ceil(Math.trunc((hidden * 2) / 3) / 8) * 8;
    return { hidden: rounded, gated: true, activation: "silu", bias: true, fused: true };
  }
  const mlp = mlpOf(config, config.whole("intermediate_size"));
  if (feedForward !== "gatedIfConfigured") return mlp;
  return { ...mlp, gated: config.flag("use_gated_mlp"), bias: config.flag("mlp_bias") };
}

function mlpOf(config: Settings, hidden: number): FeedForwardDescription {
  const isQuick = config.textIfAny("hidden_act") === "quick_gelu";
  const activation = isQuick ? "quickGelu" : encoderActivation(config, "hidden_act");
  if (activation === "tanh") throw config.refused("unknownActivation", `hidden_act "tanh" is not supported`);
  return { hidden, gated: false, activation, bias: true };
}

function poolingOf(
  { pooling, configuredDistances }: VisionArchitecture,
  config: Settings,
  isThere: (weight: RegExp) => boolean,
): VisionPooling {
  if (configuredDistances && config.flag("use_mean_pooling")) return { kind: "patches" };
  if (pooling === "attention") {
    if (!config.flag("vision_use_head")) return { kind: "mean" };
    const hidden = config.whole("intermediate_size");
    return { kind: "attention", heads: config.whole("num_attention_heads"), feedForward: mlpOf(config, hidden) };
  }
  if (pooling !== "dense" || !isThere(/(^|\.)pooler\.dense\.weight$/)) return { kind: "first" };
  const width = config.wholeIfAny("pooler_output_size") ?? config.whole("hidden_size");
  return { kind: "dense", width, activation: encoderActivation(config, "pooler_act") };
}

/** The detector that a file describes. */
export interface DescribedDetector {
  readonly name: VisionName;
  readonly description: DetectorDescription;
  readonly labels: EncoderLabels;
}

/** Whether the class of a config is a detector. */
export function isDetector(config: Settings): boolean {
  const list = config.get("architectures");
  return Array.isArray(list) && `${list[0]}`.endsWith("ForObjectDetection");
}

/** Returns the description of a detector. @throws {ArgumentError} as {@link describeVision}. */
export function describeDetector(name: VisionName, settings: Settings): DescribedDetector {
  const row = visionRow(name);
  const config = completed(name, row.fields, settings);
  if (row.tokens !== "detection")
    throw config.refused("unsupportedHead", `expected ForObjectDetection only for YOLOS, got ${name}`);
  const names = namesOf(config);
  return {
    name,
    description: { architecture: name, vision: bodyOf(name, config, () => false), labels: names.length },
    labels: { names, scores: "softmax", relevance: "sigmoid" },
  };
}

/** The model of images and texts that a file describes. */
export interface DescribedDual {
  readonly name: DualName;
  readonly description: DualDescription;
}

/** Returns a part of a config. An older form, `…_dict`, replaces it; fields that it lacks have their defaults. */
function partOf(config: Settings, key: string): Settings {
  const [part, older] = [config.inner(key), config.inner(`${key}_dict`)];
  return older ?? part ?? config.with(new Map());
}

/** Returns the part of a config of images and texts that describes the image encoder, with the class of the whole. */
export function visionPart(config: Settings): Settings {
  const part = partOf(config, "vision_config");
  const labels = ["architectures", "id2label", "num_labels", "problem_type"].map(
    (key) => [key, config.get(key)] as const,
  );
  return part.with(new Map([...part.entries(), ...labels]));
}

/**
 * Returns the description of a model of images and texts from the contents of a `config.json`.
 *
 * @throws {ArgumentError} `unsupportedConfig` and other codes for unsupported settings, which the error names.
 */
export function describeDual(name: DualName, settings: Settings): DescribedDual {
  const row = dualArchitectures[name];
  const parts = new Set(["text_config", "vision_config", "text_config_dict", "vision_config_dict"]);
  const whole = settings.with(new Map(settings.entries().filter(([key]) => !parts.has(key))));
  const config = completed(name, row.fields, whole);
  const text = completed(`${name}'s text_config`, row.text, partOf(settings, "text_config"));
  const vision = describeVision(row.vision, visionPart(settings), () => true).description;
  const textDescription = textOf(name, text);
  const isClip = name === "clip";
  const projection = isClip
    ? config.whole("projection_dim")
    : (text.wholeIfAny("projection_size") ?? textDescription.width);
  const visionWidth = isClip ? projection : vision.width;
  if (visionWidth !== projection)
    throw config.refused(
      "unsupportedConfig",
      `expected projection_size to be the image encoder's hidden_size (${vision.width}), got ${projection}`,
    );
  return {
    name,
    description: {
      architecture: name,
      sigmoid: !isClip,
      textProjection: { width: projection, bias: !isClip },
      vision: { ...vision, projection: isClip ? projection : undefined },
      text: textDescription,
      textPooling: poolingOfText(isClip, text),
    },
  };
}

/** CLIP's first models have 2 as their end token in the config, though the tokenizer has another one. */
function poolingOfText(isClip: boolean, text: Settings): TextPooling {
  if (!isClip) return { kind: "padded", padding: text.whole("pad_token_id", 0) };
  const token = text.whole("eos_token_id", 0);
  return token === 2 ? { kind: "largest" } : { kind: "end", token };
}

function textOf(name: DualName, config: Settings): EncoderDescription {
  const { width, heads, count } = sizesOf(config);
  const attention = { heads, headWidth: width / heads, bias: true, fused: false, causal: name === "clip" };
  const layer = { attentionNorm: true, attention, feedForward: mlpOf(config, config.whole("intermediate_size")) };
  const contextLength = config.whole("max_position_embeddings");
  return {
    architecture: `${name}_text_model`,
    vocabularySize: config.whole("vocab_size"),
    contextLength,
    width,
    norm: vitNorm(config),
    normPlace: "before",
    finalNorm: true,
    embeddings: { width, norm: false, positions: { count: contextLength }, tokenTypes: 0 },
    layers: Array.from({ length: count }, () => layer),
    order: Array.from({ length: count }, (_, index) => index),
  };
}
