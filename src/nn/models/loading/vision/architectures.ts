/**
 * The supported image encoders, as differences from ViT, and the keys of their `config.json`. ViT has a class token,
 * learned positions, LayerNorm before attention and feed-forward, biases, and an MLP. Each row follows the
 * architecture's code in Hugging Face's `transformers` 5.23.0, whose config classes have these fields and defaults.
 */
import type { Json } from "../../../../io/json.ts";
import type { LearnedGrid } from "../../vision/description.ts";

type Fields = Readonly<Record<string, Json>>;

/** How an image encoder differs from ViT. */
export interface VisionArchitecture {
  /** The fields of the config with their default values. */
  readonly fields: Fields;
  /** The tokens before the patches. Default: a class token. */
  readonly tokens?: "none" | "distillation" | "registers" | "detection";
  /** How learned positions are resized, or `"rotary"` for rotary ones. Default: bicubic without antialiasing. */
  readonly positions?: Omit<LearnedGrid, "kind"> | "rotary";
  /** Whether the projection of patches has no bias, or is a linear layer. Default: a convolution with bias. */
  readonly patches?: "noBias" | "flat";
  /** Whether there is a norm of the embeddings, and the final norm is of the pooled state only. */
  readonly pooledNorm?: boolean;
  /** Whether attention and feed-forward have layer scales, or have them if their first value is above 0. */
  readonly layerScale?: boolean | "configured";
  /** Whether the config chooses positions, biases of distances, and the mean of patches as BEiT's does. */
  readonly configuredDistances?: boolean;
  /** The fields with the biases of attention. Default: all projections have one. */
  readonly biases?: Readonly<Record<"query" | "key" | "value" | "output", string>>;
  /** The feed-forward. Default: an MLP of `intermediate_size`. */
  readonly feedForward?: "ratio" | "gatedIfConfigured";
  /** How states are pooled. Default: the first token's state. */
  readonly pooling?: "dense" | "attention";
  /** Whether the config chooses between LayerNorm and RMSNorm, and says if there is a final norm. */
  readonly configuredNorms?: boolean;
  /** The input of a classifier. Default: the first token's state. */
  readonly classified?: "patches" | "firstAndPatches" | "pooled";
}

const sizes = {
  hidden_size: 768,
  num_hidden_layers: 12,
  num_attention_heads: 12,
  num_channels: 3,
  image_size: 224,
  hidden_act: "gelu",
  patch_size: 16,
} as const satisfies Fields;
const labels = { id2label: null, num_labels: null, problem_type: null, architectures: null } as const satisfies Fields;
const vit = {
  ...sizes,
  ...labels,
  intermediate_size: 3072,
  layer_norm_eps: 1e-12,
  qkv_bias: true,
  pooler_output_size: null,
  pooler_act: "tanh",
} as const satisfies Fields;
const dinov2 = {
  ...sizes,
  ...labels,
  mlp_ratio: 4,
  layer_norm_eps: 1e-6,
  patch_size: 14,
  qkv_bias: true,
  use_swiglu_ffn: false,
} as const satisfies Fields;
const clip = {
  ...sizes,
  ...labels,
  intermediate_size: 3072,
  patch_size: 32,
  hidden_act: "quick_gelu",
  layer_norm_eps: 1e-5,
  projection_dim: 512,
} as const satisfies Fields;
const siglip = {
  ...sizes,
  ...labels,
  intermediate_size: 3072,
  hidden_act: "gelu_pytorch_tanh",
  layer_norm_eps: 1e-6,
  vision_use_head: true,
} as const satisfies Fields;
const { image_size: _, ...withoutSize } = siglip;
const beit = {
  ...sizes,
  ...labels,
  intermediate_size: 3072,
  layer_norm_eps: 1e-12,
  use_absolute_position_embeddings: false,
  use_relative_position_bias: false,
  use_shared_relative_position_bias: false,
  layer_scale_init_value: 0.1,
  use_mean_pooling: true,
  // of models of masked or labelled patches
  vocab_size: null,
  pool_scales: null,
  use_auxiliary_head: null,
  auxiliary_loss_weight: null,
  add_fpn: null,
  auxiliary_channels: null,
  auxiliary_num_convs: null,
  auxiliary_concat_input: null,
  semantic_loss_ignore_index: null,
  segmentation_indices: null,
} as const satisfies Fields;
const attentionBias = { query: "qkv_bias", key: "qkv_bias", value: "qkv_bias", output: "" };
const dino = { layerScale: true, classified: "firstAndPatches", feedForward: "ratio", biases: attentionBias } as const;

/** The image encoders by the `model_type` of a config; those of CLIP and SigLIP are in its `vision_config`. */
export const visionArchitectures = {
  // ViT, DINO
  vit: { fields: vit, biases: attentionBias, pooling: "dense" },
  deit: { fields: vit, biases: attentionBias, pooling: "dense", tokens: "distillation" },
  beit: {
    fields: beit,
    configuredDistances: true,
    layerScale: "configured",
    classified: "pooled",
    biases: { query: "", key: "none", value: "", output: "" },
  },
  dinov2: { ...dino, fields: dinov2 },
  dinov2_with_registers: {
    ...dino,
    fields: { ...dinov2, patch_size: 16, num_register_tokens: 4 },
    tokens: "registers",
    positions: { mode: "bicubic", antialias: true },
  },
  dinov3_vit: {
    fields: {
      ...sizes,
      ...labels,
      hidden_size: 384,
      intermediate_size: 1536,
      num_attention_heads: 6,
      layer_norm_eps: 1e-5,
      rope_theta: 100,
      query_bias: true,
      key_bias: false,
      value_bias: true,
      proj_bias: true,
      mlp_bias: true,
      use_gated_mlp: false,
      num_register_tokens: 0,
    },
    layerScale: true,
    tokens: "registers",
    positions: "rotary",
    feedForward: "gatedIfConfigured",
    biases: { query: "query_bias", key: "key_bias", value: "value_bias", output: "proj_bias" },
  },
  yolos: {
    fields: {
      ...vit,
      image_size: [512, 864],
      num_detection_tokens: 100,
      use_mid_position_embeddings: true,
    },
    biases: attentionBias,
    pooling: "dense",
    tokens: "detection",
  },
  // InternViT of InternVL
  internvl_vision: {
    fields: {
      ...sizes,
      ...labels,
      hidden_size: 1024,
      num_hidden_layers: 24,
      num_attention_heads: 16,
      patch_size: 14,
      intermediate_size: 4096,
      image_size: 448,
      layer_norm_eps: 1e-6,
      attention_bias: false,
      use_qk_norm: false,
      norm_type: "layer_norm",
      use_absolute_position_embeddings: true,
      use_mean_pooling: true,
    },
    layerScale: true,
    configuredNorms: true,
    classified: "patches",
    biases: { query: "attention_bias", key: "attention_bias", value: "attention_bias", output: "" },
  },
  clip_vision_model: {
    fields: clip,
    patches: "noBias",
    pooledNorm: true,
    classified: "patches",
  },
  siglip_vision_model: {
    fields: siglip,
    tokens: "none",
    pooling: "attention",
    classified: "patches",
  },
  // SigLIP 2 NaFlex
  siglip2_vision_model: {
    fields: { ...withoutSize, num_patches: 256 },
    tokens: "none",
    patches: "flat",
    pooling: "attention",
    classified: "patches",
    positions: { mode: "bilinear", antialias: true },
  },
} as const satisfies Readonly<Record<string, VisionArchitecture>>;

/** The name of an image encoder's architecture. */
export type VisionName = keyof typeof visionArchitectures;

const text = {
  hidden_size: 512,
  intermediate_size: 2048,
  num_hidden_layers: 12,
  num_attention_heads: 8,
  max_position_embeddings: 77,
  hidden_act: "quick_gelu",
  layer_norm_eps: 1e-5,
  vocab_size: 49_408,
  eos_token_id: 49_407,
  pad_token_id: 1,
} as const satisfies Fields;
const siglipText = {
  ...text,
  hidden_size: 768,
  intermediate_size: 3072,
  num_attention_heads: 12,
  max_position_embeddings: 64,
  hidden_act: "gelu_pytorch_tanh",
  layer_norm_eps: 1e-6,
  vocab_size: 32_000,
  projection_size: null,
} as const satisfies Fields;

/** Models of images and texts by `model_type`, with the row of the image encoder and the fields of the text encoder. */
export const dualArchitectures = {
  clip: {
    vision: "clip_vision_model",
    fields: { projection_dim: 512 },
    // the projection's size is from the config of the whole model, which overrides the configs of the parts
    text: { ...text, projection_dim: 512 },
  },
  // SigLIP, SigLIP 2
  siglip: { vision: "siglip_vision_model", text: siglipText, fields: {} },
  // SigLIP 2 NaFlex
  siglip2: { vision: "siglip2_vision_model", text: siglipText, fields: {} },
} as const satisfies Readonly<Record<string, { vision: VisionName; text: Fields; fields: Fields }>>;

/** The name of an architecture of images and texts. */
export type DualName = keyof typeof dualArchitectures;

/** Whether a `model_type` belongs to an image encoder. */
export const isVision = (type: unknown): type is VisionName =>
  typeof type === "string" && Object.hasOwn(visionArchitectures, type);

/** Whether a `model_type` belongs to a model of images and texts. */
export const isDual = (type: unknown): type is DualName =>
  typeof type === "string" && Object.hasOwn(dualArchitectures, type);

/** Returns a row with the general type, for code that reads any field. */
export const visionRow = (name: VisionName): VisionArchitecture => visionArchitectures[name];

/** Keys without an effect on results in evaluation mode, in any of these architectures. */
export const visionNotes: ReadonlySet<string> = new Set([
  "encoder_stride",
  "layerscale_value",
  "drop_path_rate",
  "apply_layernorm",
  "reshape_hidden_states",
  "use_mask_token",
  "pos_embed_shift",
  "pos_embed_jitter",
  "pos_embed_rescale",
  "stage_names",
  "interpolate_antialias",
  "interpolate_offset",
  "out_features",
  "projection_dropout",
  "layer_scale_init_value",
  "tie_word_embeddings",
  "auxiliary_loss",
  "class_cost",
  "bbox_cost",
  "giou_cost",
  "bbox_loss_coefficient",
  "giou_loss_coefficient",

  "eos_coefficient",
  "out_indices",
  "initializer_factor",
  "logit_scale_init_value",
  "return_class_token",
  "pooler_hidden_size",
]);
