/** The `config.json` of Depth Anything, and the names of its weights. */
import type { DepthDescription, DepthLevel } from "../../vision/depth/description.ts";
import { checkKeys, hasNoEffectAnywhere } from "../config_fields.ts";
import type { Place } from "../names.ts";
import type { Settings } from "../settings.ts";
import { describeVision } from "./describe.ts";
import { visionPlaces } from "./names.ts";

/** The fields that are read, with the defaults of `transformers` 5.23.0. */
const fields = {
  patch_size: 14,
  reassemble_hidden_size: 384,
  reassemble_factors: [4, 2, 1, 0.5],
  neck_hidden_sizes: [48, 96, 192, 384],
  fusion_hidden_size: 64,
  head_in_index: -1,
  head_hidden_size: 32,
  depth_estimation_type: "relative",
  max_depth: 1,
} as const;

/** The encoder of a config that lacks one. */
const backbone = {
  model_type: "dinov2",
  image_size: 518,
  hidden_size: 384,
  num_attention_heads: 6,
  patch_size: 14,
  out_indices: [9, 10, 11, 12],
  reshape_hidden_states: false,
} as const;

/** Ignored keys of older files. They say only that the encoder is part of the model. */
const notes = ["backbone_config", "backbone", "use_pretrained_backbone", "use_timm_backbone", "backbone_kwargs"];

/**
 * Reads the description of a depth model. @throws {ArgumentError} `unsupportedConfig` and other codes for unsupported
 * settings, which the error names.
 */
export function describeDepth(given: Settings): DepthDescription {
  const isKnown = (key: string) => Object.hasOwn(fields, key) || notes.includes(key) || hasNoEffectAnywhere(key);
  checkKeys(given, isKnown, "is not a setting of depth_anything");
  const config = given.with(
    new Map([...Object.entries(fields), ...given.entries().filter(([, value]) => value !== null)]),
  );
  const encoder = config.inner("backbone_config") ?? config.with(new Map(Object.entries(backbone)));
  const { vision, levels, normalizes } = encoderOf(config, encoder);
  if (config.number("head_in_index") !== -1)
    throw config.refused("unsupportedConfig", `expected head_in_index to be -1, got ${config.get("head_in_index")}`);
  const kind = config.get("depth_estimation_type");
  if (kind !== "relative" && kind !== "metric")
    throw config.wrong("depth_estimation_type", '"relative" or "metric"', kind);
  return {
    architecture: "depth_anything",
    vision,
    normalizes,
    levels,
    depth: { kind },
    fusionWidth: config.whole("fusion_hidden_size", 2),
    headWidth: config.whole("head_hidden_size"),
    scale: config.positive("max_depth"),
  };
}

type Encoder = Pick<DepthDescription, "vision" | "levels" | "normalizes">;

/** Reads the image encoder and the blocks whose states are read. */
function encoderOf(config: Settings, encoder: Settings): Encoder {
  const type = encoder.get("model_type");
  if (type !== "dinov2") throw config.wrong("backbone_config.model_type", '"dinov2"', type);
  if (encoder.flag("reshape_hidden_states", true))
    throw config.wrong("backbone_config.reshape_hidden_states", "false", encoder.get("reshape_hidden_states"));
  const own = encoder.with(new Map(encoder.entries().filter(([key]) => key !== "architectures")));
  const { description: vision } = describeVision("dinov2", own, () => false);
  const [patch] = vision.patches.size;
  if (vision.patches.size[1] !== patch || config.whole("patch_size") !== patch)
    throw config.wrong("patch_size", `the patch_size of backbone_config (${patch})`, config.get("patch_size"));
  if (config.whole("reassemble_hidden_size") !== vision.width)
    throw config.wrong("reassemble_hidden_size", `the hidden_size of backbone_config (${vision.width})`, undefined);
  const [factors, widths] = [config.numbers("reassemble_factors"), config.numbers("neck_hidden_sizes")];
  const blocks = blocksOf(encoder, vision.layers.length);
  if (blocks.length !== widths.length || factors.length !== widths.length)
    throw config.wrong("neck_hidden_sizes", `a list of ${blocks.length} widths, one for each block`, widths);
  const isFactor = (factor: number) => Number.isInteger(factor > 1 ? factor : 1 / factor) && factor <= 16;
  if (!factors.every(isFactor) || !widths.every((width) => Number.isInteger(width) && width < 2 ** 16))
    throw config.wrong("reassemble_factors", "a list of whole numbers or their inverses", factors);
  const levels = blocks.map((count, at): DepthLevel => ({ blocks: count, width: widths[at], factor: factors[at] }));
  return { vision, levels, normalizes: encoder.flag("apply_layernorm", true) };
}

/** Returns the numbers of blocks: `out_indices`, or the ends of `out_features`, such as "stage9". */
function blocksOf(encoder: Settings, layers: number): number[] {
  const [indices, names] = [encoder.get("out_indices"), encoder.get("out_features")];
  const given = Array.isArray(indices)
    ? indices.map((index) => (Number(index) < 0 ? layers + 1 + Number(index) : Number(index)))
    : Array.isArray(names)
      ? names.map((name) => (name === "stem" ? 0 : Number(`${name}`.replace(/^stage/, ""))))
      : [layers];
  const isAscending = given.every((count, at) => count > (given[at - 1] ?? -1));
  if (given.length > 0 && isAscending && given.every((count) => Number.isInteger(count) && count <= layers))
    return given;
  throw encoder.wrong("out_indices", `an ascending list of numbers up to ${layers}`, indices ?? names);
}

/** Returns the place of every layer with weights. */
export function depthPlaces({ vision, levels }: DepthDescription): Place[] {
  const place = (path: string, name: string): Place => ({ path, names: [name] });
  const last = levels.length - 1;
  const [stage, fusion] = ["neck.reassemble_stage.layers", "neck.fusion_stage.layers"];
  const residual = (path: string, name: string) =>
    [1, 2].map((at) => place(`${path}.convolution${at}`, `${name}.convolution${at}`));
  return [
    ...visionPlaces("dinov2", vision).map(({ path, names, ...rest }) => ({
      ...rest,
      path: `vision.${path}`,
      names: names.filter((name) => !name.startsWith("dinov2.")).map((name) => `backbone.${name}`),
    })),
    ...levels.flatMap(({ factor }, at) => [
      place(`levels.${at}.projection`, `${stage}.${at}.projection`),
      ...(factor === 1 ? [] : [place(`levels.${at}.resize`, `${stage}.${at}.resize`)]),
      place(`levels.${at}.convolution`, `neck.convs.${at}`),
    ]),
    ...Array.from({ length: last + 1 }, (_, at) => [
      place(`fusions.${at}.projection`, `${fusion}.${at}.projection`),
      ...(at === 0 ? [] : residual(`fusions.${at}.level`, `${fusion}.${at}.residual_layer1`)),
      ...residual(`fusions.${at}.sum`, `${fusion}.${at}.residual_layer2`),
    ]).flat(),
    place("convolution1", "head.conv1"),
    place("convolution2", "head.conv2"),
    place("head", "head.conv3"),
  ];
}

/**
 * Whether results do not depend on a weight. The coarsest level is not added to another level, so some of its weights
 * have no effect; masks are for training.
 */
export const isUnusedDepth = (name: string): boolean =>
  /^neck\.fusion_stage\.layers\.0\.residual_layer1\./.test(name) || name === "backbone.embeddings.mask_token";
