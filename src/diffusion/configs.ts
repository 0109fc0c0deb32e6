/** Reads the configs of networks in folders of `diffusers`. */
import { isSafeInteger } from "../core/values.ts";
import type { Settings } from "../nn/models/loading/settings.ts";
import type { AutoencoderOptions } from "./autoencoder.ts";
import { checkSettings } from "./files.ts";
import type { TextEncoderOptions } from "./text_encoder.ts";
import type { UNetOptions } from "./unet.ts";

/** The types of a U-Net's levels, and whether they have attention. */
const downTypes = { CrossAttnDownBlock2D: true, DownBlock2D: false } as const;
const upTypes = { CrossAttnUpBlock2D: true, UpBlock2D: false } as const;
const midTypes = { UNetMidBlock2DCrossAttn: "attention", UNetMidBlock2D: "residual" } as const;

const unetSettings = {
  className: "UNet2DConditionModel",
  read: [
    "in_channels",
    "out_channels",
    "block_out_channels",
    "down_block_types",
    "up_block_types",
    "mid_block_type",
    "layers_per_block",
    "attention_head_dim",
    "transformer_layers_per_block",
    "cross_attention_dim",
    "use_linear_projection",
    "norm_num_groups",
    "norm_eps",
    "flip_sin_to_cos",
    "freq_shift",
  ],
  fixed: {
    act_fn: ["silu"],
    center_input_sample: [false],
    downsample_padding: [1],
    mid_block_scale_factor: [1],
    only_cross_attention: [false],
    dual_cross_attention: [false],
    class_embed_type: [null],
    dropout: [0],
    addition_embed_type: [null],
    encoder_hid_dim_type: [null],
    encoder_hid_dim: [null],
    num_class_embeds: [null],
    resnet_time_scale_shift: ["default"],
    resnet_skip_time_act: [false],
    resnet_out_scale_factor: [1],
    time_embedding_type: ["positional"],
    time_embedding_dim: [null],
    time_embedding_act_fn: [null],
    timestep_post_act: [null],
    time_cond_proj_dim: [null],
    conv_in_kernel: [3],
    conv_out_kernel: [3],
    attention_type: ["default"],
    class_embeddings_concat: [false],
    mid_block_only_cross_attention: [null, false],
    cross_attention_norm: [null],
    num_attention_heads: [null],
    reverse_transformer_layers_per_block: [null],
  },
  // Settings that only other programs read, or that affect only how results are computed.
  withoutEffect: [
    "sample_size",
    "upcast_attention",
    "addition_time_embed_dim",
    "addition_embed_type_num_heads",
    "projection_class_embeddings_input_dim",
  ],
} as const;

/** Returns the options of a `UNet2DConditionModel`. @throws {ArgumentError} @throws {FileFormatError} */
export function unetOptions(config: Settings): UNetOptions {
  checkSettings(config, unetSettings);
  const channels = wholeList(config, "block_out_channels", [320, 640, 1280, 1280]);
  const down = typesOf(config, "down_block_types", downTypes) ?? [true, true, true, false];
  const up = typesOf(config, "up_block_types", upTypes) ?? [false, true, true, true];
  if (down.length !== up.length || down.some((each, at) => each !== up.at(-1 - at)))
    throw config.refused("unsupportedConfig", "expected up_block_types to mirror down_block_types");
  const hasMid = !config.names.includes("mid_block_type") || config.get("mid_block_type") !== undefined;
  const mid = config.textIfAny("mid_block_type") ?? "UNetMidBlock2DCrossAttn";
  const midBlock = hasMid ? midTypes[mid as keyof typeof midTypes] : "none";
  if (midBlock === undefined)
    throw config.refused(
      "unsupportedConfig",
      `expected mid_block_type to be one of ${Object.keys(midTypes).join(", ")}, got "${mid}"`,
    );
  return {
    inChannels: config.wholeIfAny("in_channels"),
    outChannels: config.wholeIfAny("out_channels"),
    blockOutChannels: channels,
    attention: down,
    midBlock,
    layersPerBlock: config.wholeIfAny("layers_per_block"),
    heads: wholes(config, "attention_head_dim", 8), // the name of this field is a historical mistake of `diffusers`
    transformerLayers: wholes(config, "transformer_layers_per_block", 1),
    contextWidth: config.wholeIfAny("cross_attention_dim") ?? 1280,
    linearProjection: config.flag("use_linear_projection", false),
    groups: config.wholeIfAny("norm_num_groups"),
    normEps: config.numberIfAny("norm_eps"),
    flipSinToCos: config.flag("flip_sin_to_cos", true),
    freqShift: config.numberIfAny("freq_shift"),
  };
}

const autoencoderSettings = {
  className: "AutoencoderKL",
  read: [
    "in_channels",
    "out_channels",
    "latent_channels",
    "block_out_channels",
    "layers_per_block",
    "norm_num_groups",
    "scaling_factor",
    "mid_block_add_attention",
    "use_quant_conv",
    "use_post_quant_conv",
    "down_block_types",
    "up_block_types",
  ],
  fixed: { act_fn: ["silu"], latents_mean: [null], latents_std: [null], shift_factor: [null, 0] },
  withoutEffect: ["sample_size", "force_upcast"],
} as const;

/** Returns the options of an `AutoencoderKL`. @throws {ArgumentError} @throws {FileFormatError} */
export function autoencoderOptions(config: Settings): AutoencoderOptions {
  checkSettings(config, autoencoderSettings);
  const channels = wholeList(config, "block_out_channels", [64]);
  for (const [name, type] of [
    ["down_block_types", "DownEncoderBlock2D"],
    ["up_block_types", "UpDecoderBlock2D"],
  ] as const)
    typesOf(config, name, { [type]: true });
  return {
    inChannels: config.wholeIfAny("in_channels"),
    outChannels: config.wholeIfAny("out_channels"),
    latentChannels: config.wholeIfAny("latent_channels"),
    blockOutChannels: channels,
    layersPerBlock: config.wholeIfAny("layers_per_block") ?? 1,
    groups: config.wholeIfAny("norm_num_groups"),
    scalingFactor: config.positiveIfAny("scaling_factor"),
    midAttention: config.flag("mid_block_add_attention", true),
    quantConv: config.flag("use_quant_conv", true),
    postQuantConv: config.flag("use_post_quant_conv", true),
  };
}

const textEncoderSettings = {
  className: "CLIPTextModel",
  read: [
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "hidden_act",
    "max_position_embeddings",
    "layer_norm_eps",
  ],
  fixed: { model_type: ["clip_text_model"] },
  withoutEffect: ["projection_dim", "dropout", "initializer_factor", "pad_token_id", "bos_token_id", "eos_token_id"],
} as const;

const activations = { quick_gelu: "quickGelu", gelu: "gelu" } as const;

/** Returns the options of a `CLIPTextModel`. @throws {ArgumentError} @throws {FileFormatError} */
export function textEncoderOptions(config: Settings): TextEncoderOptions {
  checkSettings(config, textEncoderSettings);
  const name = config.textIfAny("hidden_act") ?? "quick_gelu";
  const activation = activations[name as keyof typeof activations];
  if (activation === undefined)
    throw config.refused(
      "unknownActivation",
      `expected hidden_act to be one of ${Object.keys(activations).join(", ")}, got "${name}"`,
    );
  return {
    vocabularySize: config.wholeIfAny("vocab_size") ?? 49_408,
    width: config.wholeIfAny("hidden_size") ?? 512,
    innerWidth: config.wholeIfAny("intermediate_size") ?? 2048,
    layers: config.wholeIfAny("num_hidden_layers") ?? 12,
    heads: config.wholeIfAny("num_attention_heads") ?? 8,
    contextLength: config.wholeIfAny("max_position_embeddings"),
    normEps: config.numberIfAny("layer_norm_eps"),
    activation,
  };
}

const isWhole = (value: unknown): value is number => isSafeInteger(value) && value > 0;

function wholeList(config: Settings, name: string, fallback: number[]): number[] {
  const value = config.get(name) ?? fallback;
  if (Array.isArray(value) && value.length > 0 && value.every(isWhole)) return value;
  throw config.wrong(name, "a list of whole numbers above 0", value);
}

const wholes = (config: Settings, name: string, fallback: number): number | number[] =>
  Array.isArray(config.get(name)) ? wholeList(config, name, []) : (config.wholeIfAny(name) ?? fallback);

/** The meanings of the types of levels; undefined for a missing list. */
function typesOf<T>(config: Settings, name: string, known: Readonly<Record<string, T>>): T[] | undefined {
  const value = config.get(name);
  if (value === undefined) return undefined;
  if (!Array.isArray(value)) throw config.wrong(name, "a list of types", value);
  const unknown = value.find((each) => typeof each !== "string" || !Object.hasOwn(known, each));
  if (unknown === undefined) return value.map((each: string) => known[each]!);
  throw config.refused(
    "unsupportedConfig",
    `expected ${name} to be of ${Object.keys(known).join(", ")}, got ${JSON.stringify(unknown)}`,
  );
}
