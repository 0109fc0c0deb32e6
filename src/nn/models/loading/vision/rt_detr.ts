/** The `config.json` of RT-DETR, and the names of its weights. */
import { numberIn } from "../../../../core/values.ts";
import type { EncoderLabels } from "../../encoder/labels.ts";
import type { RtDetrDescription } from "../../vision/rt_detr/description.ts";
import { checkKeys, hasNoEffectAnywhere } from "../config_fields.ts";
import { encoderActivation } from "../encoder/activations.ts";
import { namesOf } from "../encoder/heads.ts";
import type { Place } from "../names.ts";
import type { Settings } from "../settings.ts";
import { decoderNames, encoderNames, ofDetector } from "./detr.ts";
import { describeResNet, resNetPlaces } from "./resnet.ts";

/** The fields that are read, with the defaults of `transformers` 5.23.0. */
const fields = {
  layer_norm_eps: 1e-5,
  encoder_hidden_dim: 256,
  encoder_layers: 1,
  encoder_ffn_dim: 1024,
  encoder_attention_heads: 8,
  encode_proj_layers: [2],
  positional_encoding_temperature: 10_000,
  encoder_activation_function: "gelu",
  activation_function: "silu",
  hidden_expansion: 1,
  d_model: 256,
  num_queries: 300,
  decoder_in_channels: [256, 256, 256],
  decoder_ffn_dim: 1024,
  num_feature_levels: 3,
  decoder_n_points: 4,
  decoder_layers: 6,
  decoder_attention_heads: 8,
  decoder_activation_function: "relu",
} as const;

/** Keys for which only one value is supported; null is the default too. */
const only: Readonly<Record<string, unknown>> = {
  batch_norm_eps: 1e-5,
  eval_size: undefined,
  normalize_before: false,
  learn_initial_query: false,
  anchor_image_size: undefined,
  use_focal_loss: true,
  with_box_refine: true,
};

/** Ignored keys: settings of training, and copies of other keys. */
const notes: ReadonlySet<string> = new Set([
  "backbone_config",
  "backbone",
  "use_timm_backbone",
  "use_pretrained_backbone",
  "backbone_kwargs",
  "freeze_backbone_batch_norms",
  "encoder_in_channels",
  "feat_strides",
  "num_denoising",
  "label_noise_ratio",
  "box_noise_scale",
  "disable_custom_kernels",
  "is_encoder_decoder",
  "matcher_alpha",
  "matcher_gamma",
  "matcher_class_cost",
  "matcher_bbox_cost",
  "matcher_giou_cost",
  "auxiliary_loss",
  "focal_loss_alpha",
  "focal_loss_gamma",
  "weight_loss_vfl",
  "weight_loss_bbox",
  "weight_loss_giou",
  "eos_coefficient",
  "initializer_bias_prior_prob",
  "hidden_size",
  "num_attention_heads",
  "num_hidden_layers",
]);

/**
 * Reads the description of a detector. @throws {ArgumentError} `unsupportedConfig` and other codes for unsupported
 * settings, which the error names.
 */
export function describeRtDetr(given: Settings): {
  readonly description: RtDetrDescription;
  readonly labels: EncoderLabels;
} {
  const isKnown = (key: string) =>
    Object.hasOwn(fields, key) ||
    notes.has(key) ||
    hasNoEffectAnywhere(key) ||
    (Object.hasOwn(only, key) && only[key] === given.get(key));
  checkKeys(given, isKnown, "is not a supported setting of rt_detr");
  const config = ofDetector(given, fields);
  const names = namesOf(config);
  return {
    description: { ...bodyOf(config), labels: names.length },
    labels: { names, scores: "sigmoid", relevance: "sigmoid" },
  };
}

function bodyOf(config: Settings): Omit<RtDetrDescription, "labels"> {
  const network = config.inner("backbone_config") ?? config.with(new Map([["out_indices", [2, 3, 4]]]));
  const type = network.textIfAny("model_type") ?? "rt_detr_resnet";
  if (type !== "rt_detr_resnet") throw network.wrong("model_type", '"rt_detr_resnet"', type);
  const backbone = describeResNet(network, true);
  const levels = levelsOf(network, backbone.stages.length);
  const [encoderWidth, width] = [config.whole("encoder_hidden_dim"), config.whole("d_model")];
  if (encoderWidth % 4 !== 0) throw config.wrong("encoder_hidden_dim", "a multiple of 4", encoderWidth);
  const inputs = config.numbers("decoder_in_channels");
  if (inputs.length !== levels.length || inputs.some((channels) => channels !== encoderWidth))
    throw config.wrong("decoder_in_channels", `${levels.length} times encoder_hidden_dim (${encoderWidth})`, inputs);
  if (config.whole("num_feature_levels") !== levels.length)
    throw config.wrong("num_feature_levels", `${levels.length}, the stages of backbone_config`, undefined);
  return {
    architecture: "rt_detr",
    backbone,
    levels,
    encoderWidth,
    width,
    attended: attendedOf(config, levels.length),
    encoder: stackOf(config, "encoder", encoderWidth),
    decoder: stackOf(config, "decoder", width),
    encoderActivation: activationOf(config, "encoder_activation_function"),
    decoderActivation: activationOf(config, "decoder_activation_function"),
    activation: activationOf(config, "activation_function"),
    expansion: config.positive("hidden_expansion"),
    temperature: config.positive("positional_encoding_temperature"),
    queries: config.whole("num_queries"),
    points: config.whole("decoder_n_points"),
    eps: config.positive("layer_norm_eps"),
  };
}

function activationOf(config: Settings, key: string): RtDetrDescription["activation"] {
  const activation = encoderActivation(config, key);
  if (activation !== "tanh") return activation;
  throw config.wrong(key, "gelu, relu or silu", activation);
}

function stackOf(config: Settings, name: "encoder" | "decoder", width: number) {
  const heads = config.whole(`${name}_attention_heads`);
  if (width % heads !== 0) throw config.wrong(`${name}_attention_heads`, `a divisor of ${width}`, heads);
  const layers = config.whole(`${name}_layers`, name === "encoder" ? 0 : 1);
  return { layers, heads, hidden: config.whole(`${name}_ffn_dim`) };
}

function attendedOf(config: Settings, levels: number): number[] {
  const list = config.get("encode_proj_layers");
  const isLevel = (at: unknown) => Number.isInteger(at) && numberIn(at) >= 0 && numberIn(at) < levels;
  if (Array.isArray(list) && list.every(isLevel)) return [...list];
  throw config.wrong("encode_proj_layers", `a list of numbers below ${levels}`, list);
}

/** Returns the stages that are read; each has half the resolution of the one before. */
function levelsOf(network: Settings, stages: number): number[] {
  const [indices, names] = [network.get("out_indices"), network.get("out_features")];
  const given = Array.isArray(indices)
    ? indices.map(Number)
    : Array.isArray(names)
      ? names.map((name) => Number(`${name}`.replace(/^stage/, "")))
      : [stages];
  const isNext = given.every((stage, at) => at === 0 || stage === given[at - 1] + 1);
  if (isNext && given.every((stage) => Number.isInteger(stage) && stage > 0 && stage <= stages)) return given;
  throw network.wrong("out_indices", `successive stages up to ${stages}`, indices ?? names);
}

const convolution = (path: string, name: string): Place[] => [
  { path: `${path}.convolution`, names: [`${name}.conv`, `${name}.0`] },
  { path: `${path}.norm`, names: [`${name}.norm`, `${name}.1`] },
];

function crossStagePlaces(path: string, name: string, isNarrow: boolean): Place[] {
  return [
    ...convolution(`${path}.first`, `${name}.conv1`),
    ...convolution(`${path}.second`, `${name}.conv2`),
    ...[0, 1, 2].flatMap((at) => [
      ...convolution(`${path}.blocks.${at}.wide`, `${name}.bottlenecks.${at}.conv1`),
      ...convolution(`${path}.blocks.${at}.narrow`, `${name}.bottlenecks.${at}.conv2`),
    ]),
    ...(isNarrow ? convolution(`${path}.last`, `${name}.conv3`) : []),
  ];
}

const decoderBlock: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.entries(decoderNames).filter(([path]) => !path.startsWith("crossAttention."))),
  "crossAttention.offsets": "encoder_attn.sampling_offsets",
  "crossAttention.weights": "encoder_attn.attention_weights",
  "crossAttention.value": "encoder_attn.value_proj",
  "crossAttention.output": "encoder_attn.output_proj",
};

/** Returns the place of every layer with weights. */
export function rtDetrPlaces(description: RtDetrDescription): Place[] {
  const { backbone, levels, encoder, attended, decoder, encoderWidth, expansion } = description;
  const place = (path: string, name: string): Place => ({ path, names: [name] });
  const isNarrow = Math.trunc(encoderWidth * expansion) !== encoderWidth;
  const pairs = Array.from({ length: levels.length - 1 }, (_, at) => at);
  const head = (path: string, name: string) =>
    [0, 1, 2].map((at) => place(`${path}.layers.${at}`, `${name}.layers.${at}`));
  const blocks = Array.from({ length: decoder.layers }, (_, at) => at);
  return [
    ...levels.flatMap((_, at) => convolution(`projections.${at}`, `model.encoder_input_proj.${at}`)),
    ...resNetPlaces("backbone", "model.backbone.model", backbone),
    ...attended.flatMap((_, at) =>
      Array.from({ length: encoder.layers }, (_, index) =>
        Object.entries(encoderNames).map(([part, name]) => ({
          path: `encoderBlocks.${at * encoder.layers + index}.${part}`,
          names: ["encoder", "aifi"].map((kind) => `model.encoder.${kind}.${at}.layers.${index}.${name}`),
        })),
      ).flat(),
    ),
    ...pairs.flatMap((at) => [
      ...convolution(`pyramid.lateral.${at}`, `model.encoder.lateral_convs.${at}`),
      ...crossStagePlaces(`pyramid.finer.${at}`, `model.encoder.fpn_blocks.${at}`, isNarrow),
      ...convolution(`pyramid.down.${at}`, `model.encoder.downsample_convs.${at}`),
      ...crossStagePlaces(`pyramid.coarser.${at}`, `model.encoder.pan_blocks.${at}`, isNarrow),
    ]),
    ...levels.flatMap((_, at) => convolution(`inputs.${at}`, `model.decoder_input_proj.${at}`)),
    place("placeProjection", "model.enc_output.0"),
    place("placeNorm", "model.enc_output.1"),
    place("placeLabels", "model.enc_score_head"),
    ...head("placeBoxes", "model.enc_bbox_head"),
    ...[0, 1].map((at) => place(`boxPositions.${at}`, `model.decoder.query_pos_head.layers.${at}`)),
    ...blocks.flatMap((at) =>
      Object.entries(decoderBlock).map(([part, name]) =>
        place(`blocks.${at}.${part}`, `model.decoder.layers.${at}.${name}`),
      ),
    ),
    {
      path: "labelHead",
      names: ["model.decoder.", ""].map((prefix) => `${prefix}class_embed.${decoder.layers - 1}`),
    },
    ...blocks.flatMap((at) =>
      [0, 1, 2].map((layer) => ({
        path: `boxHeads.${at}.layers.${layer}`,
        names: ["model.decoder.", ""].map((prefix) => `${prefix}bbox_embed.${at}.layers.${layer}`),
      })),
    ),
  ];
}

/** Unused weights: queries for training, the labels of earlier blocks, and copies of heads outside of the decoder. */
const unused = [
  /^model\.denoising_class_embed\./,
  /^(model\.decoder\.)?class_embed\./,
  /^bbox_embed\./,
  /^model\.(anchors|valid_mask)$/,
];

/** Whether a tensor of a checkpoint has no effect on results. */
export const isUnusedInRtDetr = (name: string): boolean => unused.some((pattern) => pattern.test(name));
