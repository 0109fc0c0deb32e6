/**
 * The supported architectures, as differences from Llama. Each row follows the architecture's paper or its code in
 * Hugging Face's `transformers`; `docs/models.md` documents them. Llama has RMSNorm before attention and feed-forward,
 * no biases, SwiGLU, rotary positions, and causal attention without a window.
 */
import type { DecoderDescription } from "../decoder/description.ts";
import type { Architecture } from "./architecture.ts";
import {
  afmoeFields,
  dbrxFields,
  denseFirst,
  ernieMoeFields,
  exaoneMoeFields,
  hunyuanMoeLayer,
  hyperclovaFields,
  hyV3Fields,
  internlm3Fields,
  lfm2MoeFields,
  llama4Fields,
  mellumFields,
  miniCpm3Fields,
  minimaxFields,
  qwen2MoeFields,
  squareFields,
} from "./derived_fields.ts";
import { falconFields, falconParallel } from "./falcon.ts";
import { falconH1StateSpace } from "./falcon_h1.ts";
import { gemma3nFields, gemma3nLayer, gemma3nParts, gemma4Fields, gemma4Layer, gemma4Parts } from "./gemma_next.ts";
import {
  bambaFields,
  deltaNet,
  deltaNetApart,
  hybridFields,
  hybridStateSpace,
  jambaFields,
  jambaState,
  kimiDelta,
  kimiFields,
  lfm2Fields,
  nemotronFields,
  nemotronParts,
  nemotronStateSpace,
  shortConvolution,
} from "./recurrent.ts";
import { apertusRotation, cwmRotation, gptOssRotation, ministral3Rotation } from "./rotations.ts";
import { sparseParts } from "./sparse_attention.ts";

/** Fields that all Gemma models share. */
const gemma1 = { normsFromOne: true, activation: "geluTanh", scaledEmbeddings: true } as const;
/** Fields that Gemma 2 and 3 share. */
const gemma = {
  ...gemma1,
  norms: "both",
  queryScalar: true,
  activationField: "hidden_activation",
} as const satisfies Partial<Architecture>;

const gemmaNext = { ...gemma, normsFromOne: false, queryKeyNorm: "head" } as const satisfies Partial<Architecture>;

const glm = {
  interleaved: true,
  partialRotation: 0.5,
  fused: "gateUp",
  biases: { output: false, feedForward: false },
} as const satisfies Partial<Architecture>;

const cohere = {
  norm: { eps: "layer_norm_eps", bias: false },
  parallel: { norms: 1 },
  interleaved: true,
  logitScale: true,
} as const satisfies Partial<Architecture>;

const graniteWindows = {
  multipliers: true,
  sinks: true,
  windows: { every: 4, first: true },
  layerThetas: true,
} as const satisfies Partial<Architecture>;

const lfm2 = {
  queryKeyNorm: "head",
  activation: "silu",
  biases: { queryKeyValue: false, output: false },
  recurrent: shortConvolution,
} as const satisfies Partial<Architecture>;

const qwenDelta = {
  normsFromOne: true,
  queryKeyNorm: "head",
  gatedHeads: true,
  partialRotation: 0.25,
} as const satisfies Partial<Architecture>;

const noAttentionBias = { queryKeyValue: false, output: false } as const;
const noBias = { ...noAttentionBias, feedForward: false } as const;
const usesBias = { queryKeyValue: "use_bias", output: "use_bias", feedForward: "use_bias" } as const;

/** Keeps the names of rows in the type, and not the rows, so that the declaration is short. */
const tableOf = <N extends string>(rows: Readonly<Record<N, Architecture>>): Readonly<Record<N, Architecture>> => rows;

/** The architectures by the `model_type` of a `config.json`. */
export const architectures = tableOf({
  gpt2: {
    layersField: "n_layer",
    norm: { eps: "layer_norm_epsilon" },
    fused: true,
    activation: "geluTanh",
    plain: true,
    learnedPositions: true,
  },
  // StarCoder, SantaCoder
  gpt_bigcode: { layersField: "n_layer", learnedPositions: true, groupedHeads: true },
  gpt_neo: { layersField: "num_layers", learnedPositions: true },
  // Llama 1, 2, 3; SmolLM, TinyLlama, Yi
  llama: {},
  mistral: { windows: "all" },
  mixtral: { windows: "all", experts: { normalized: true } },
  // Qwen2, Qwen2.5
  qwen2: { biases: { queryKeyValue: true }, windows: "upper" },
  qwen3: { queryKeyNorm: "head", windows: "upper" },
  qwen3_moe: { queryKeyNorm: "head", windows: "all", experts: {} },
  gemma2: { ...gemma, softcaps: true, windows: { every: 2 } },
  gemma3_text: {
    ...gemma,
    queryKeyNorm: "head",
    windows: { every: 6 },
    localBase: "rope_local_base_freq",
  },
  // Phi-3, Phi-4
  phi3: { fused: true, windows: "all", partialRotation: 1, longRopeOnly: true },
  olmo2: { norms: "after", queryKeyNorm: "all" },
  smollm3: { unrotated: "listed", windows: "unrotated" },
  ministral: { windows: "all" },
  ministral3: { windows: "all", rotation: ministral3Rotation, tempered: true },
  olmo: { norm: { eps: 1e-5, weight: false }, clips: true },
  olmo3: { norms: "after", queryKeyNorm: "all", windows: { every: 4 }, localBase: 500_000 },
  granite: { multipliers: true },
  gemma: { ...gemma1, tanhGelu: true },
  // Phi-1, Phi-1.5, Phi-2
  phi: {
    norm: { eps: "layer_norm_eps" },
    parallel: { norms: 1 },
    plain: true,
    activation: "geluTanh",
    partialRotation: 0.5,
    queryKeyNorm: "headLayerNorm",
    queryKeyNormField: "qk_layernorm",
    biases: { queryKeyValue: true, output: true, feedForward: true, head: true },
  },
  glm: glm,
  // GLM-4-0414
  glm4: { ...glm, norms: "both" },
  // Command R
  cohere: { ...cohere, queryKeyNorm: "headLayerNorms", queryKeyNormField: "use_qk_norm" },
  // Command R7B, Command A
  cohere2: { ...cohere, windows: { every: 4 }, unrotated: "unwindowed" },
  // Nemotron-4, Minitron
  nemotron: {
    norm: { eps: "norm_eps" },
    normsFromOne: true,
    plain: true,
    activation: "reluSquared",
    partialRotation: 0.5,
  },
  seed_oss: { biases: { output: "attention_out_bias" } },
  ernie4_5: { interleaved: true, biases: usesBias },
  stablelm: {
    norm: { eps: "layer_norm_eps" },
    partialRotation: 0.25,
    parallel: { norms: 1, key: "use_parallel_residual" },
    queryKeyNorm: "headLayerNorms",
    queryKeyNormField: "qk_layernorm",
    biases: { queryKeyValue: "use_qkv_bias", output: false, feedForward: false },
  },
  starcoder2: {
    norm: { eps: "norm_epsilon" },
    plain: true,
    activation: "geluTanh",
    biases: usesBias,
    windows: "all",
  },
  arcee: { plain: true, activation: "reluSquared" },
  exaone4: {
    norms: "after",
    queryKeyNorm: "head",
    windows: { every: 4 },
    unrotated: "unwindowedOfMixed",
  },
  gpt_oss: {
    sinks: true,
    windows: { every: 2 },
    rotation: gptOssRotation,
    clampedGate: true,
    biases: { feedForward: true },
    experts: { normalized: true, routerBias: true },
  },
  olmoe: { queryKeyNorm: "all", clips: true, experts: {} },
  // Granite 3 MoE
  granitemoe: { multipliers: true, fused: "gateUp", experts: { normalized: true } },
  // Granite 4
  granitemoehybrid: {
    multipliers: true,
    fused: "gateUp",
    unrotated: "unlessRope",
    derived: hybridFields,
    recurrent: hybridStateSpace,
    experts: { normalized: true, beside: "shared_intermediate_size" },
  },
  // Qwen1.5-MoE, Qwen2-MoE
  qwen2_moe: {
    biases: { queryKeyValue: "qkv_bias", output: false },
    windows: "all",
    derived: qwen2MoeFields,
    experts: { shared: "shared_expert_intermediate_size" },
  },
  // GLM-4.5, GLM-4.6
  glm4_moe: {
    partialRotation: 0.5,
    biases: { output: false, feedForward: false },
    queryKeyNormField: "use_qk_norm",
    queryKeyNorm: "head",
    experts: { grouped: true },
  },
  deepseek_v2: {
    latent: true,
    interleaved: true,
    experts: { limited: true },
  },
  deepseek_v3: { latent: true, latentHeadDim: true, experts: { grouped: true } },
  // GPT-NeoX, Pythia
  gpt_neox: {
    norm: { eps: "layer_norm_eps" },
    plain: true,
    activation: "gelu",
    groupedHeads: true,
    parallel: { norms: 2, key: "use_parallel_residual" },
    biases: { feedForward: true },
    partialRotation: 0.25,
    partialField: "rotary_pct",
    baseField: "rotary_emb_base",
  },
  falcon: {
    norm: { eps: "layer_norm_epsilon" },
    plain: true,
    groupedHeads: true,
    activation: "gelu",
    activationField: "activation",
    parallel: falconParallel,
    derived: falconFields,
    biases: { queryKeyValue: "bias", output: "bias", feedForward: "bias" },
  },
  opt: { learnedPositions: true },
  bloom: { layersField: "n_layer", groupedHeads: true },
  lfm2: { ...lfm2, derived: lfm2Fields },
  mamba2: {},
  qwen3_next: {
    ...qwenDelta,
    recurrent: deltaNet,
    experts: { shared: "shared_expert_intermediate_size" },
  },
  mpt: { layersField: "n_layers", fused: true },
  gptj: { layersField: "n_layer", interleaved: true },
  codegen: { layersField: "n_layer", interleaved: true },
  llama4_text: {
    interleaved: true,
    unrotated: "listed",
    chunked: true,
    derived: llama4Fields,
    experts: { scalesInputs: true, beside: "moe_intermediate_size" },
  },
  falcon_h1: {
    recurrent: falconH1StateSpace,
    besideAttention: true,
    logitScale: "lm_head_multiplier",
  },
  helium: { interleaved: true, biases: { output: false }, derived: squareFields },
  // Code World Model
  cwm: { windows: { every: 4, first: true }, rotation: cwmRotation },
  internlm3: { derived: internlm3Fields },
  iquestcoder: {},
  // Granite with windows
  granite_swa: { ...graniteWindows },
  // Granite MoE with a shared expert
  granitemoeshared: {
    multipliers: true,
    fused: "gateUp",
    experts: { normalized: true, beside: "shared_intermediate_size" },
  },
  // Granite MoE with windows
  granitemoe_swa: {
    ...graniteWindows,
    fused: "gateUp",
    experts: { normalized: true, beside: "shared_intermediate_size" },
  },
  vaultgemma: { ...gemma, norms: "before", softcaps: true, windows: { every: 2 } },
  // dots.llm1
  dots1: {
    queryKeyNorm: "head",
    windows: "upper",
    biases: { feedForward: false },
    experts: { grouped: true },
  },
  solar_open: {
    partialRotation: 1,
    wholeRotation: true,
    biases: { output: false, feedForward: false },
    experts: { grouped: true },
  },
  minimax_m2: {
    queryKeyNorm: "all",
    partialRotation: 1,
    biases: noBias,
    derived: minimaxFields,
    experts: { sigmoid: true, normalized: true },
  },
  // GLM-4.7-Flash
  glm4_moe_lite: {
    latent: true,
    partialRotation: 1,
    derived: denseFirst,
    experts: { grouped: true },
  },
  youtu: { latent: true, latentHeadDim: true },
  ernie4_5_moe: {
    interleaved: true,
    biases: noBias,
    derived: ernieMoeFields,
    experts: { normalized: true, corrected: true },
  },
  flex_olmo: { norms: "after", queryKeyNorm: "all", experts: {} },
  lfm2_moe: { ...lfm2, derived: lfm2MoeFields, experts: { sigmoid: true, epsilon: 1e-6 } },
  jais2: { norm: { eps: "layer_norm_eps" }, plain: true, activation: "reluSquared" },
  hyperclovax: {
    multipliers: true,
    logitScale: "logits_scaling",
    postNormField: "use_post_norm",
    derived: hyperclovaFields,
  },
  // K-EXAONE
  exaone_moe: {
    queryKeyNorm: "head",
    windows: { every: 4 },
    unrotated: "unwindowedOfMixed",
    biases: noBias,
    derived: exaoneMoeFields,
    experts: { grouped: true },
  },
  // Hunyuan 3
  hy_v3: {
    queryKeyNorm: "head",
    biases: { feedForward: false },
    derived: hyV3Fields,
    experts: { sigmoid: true, normalized: true },
  },
  hunyuan_v1_dense: { queryKeyNorm: "rotatedHead", alphaBase: true, biases: { feedForward: false } },
  // Hunyuan-A13B
  hunyuan_v1_moe: {
    queryKeyNorm: "rotatedHead",
    alphaBase: true,
    biases: { feedForward: false },
    ofLayer: hunyuanMoeLayer,
    experts: { normalized: true, beside: "intermediate_size" },
  },
  minicpm3: { latent: true, multipliers: true, derived: miniCpm3Fields },
  qwen3_5_text: { ...qwenDelta, recurrent: deltaNetApart, axes: true },
  gemma3n_text: {
    ...gemmaNext,
    windows: { every: 5 },
    localBase: "rope_local_base_freq",
    derived: gemma3nFields,
    ofLayer: gemma3nLayer,
    parts: gemma3nParts,
  },
  gemma4_text: {
    ...gemmaNext,
    windows: { every: 6 },
    localBase: 10_000,
    derived: gemma4Fields,
    ofLayer: gemma4Layer,
    parts: gemma4Parts,
  },
  qwen3_5_moe_text: {
    ...qwenDelta,
    recurrent: deltaNetApart,
    axes: true,
    experts: { normalized: true, shared: "shared_expert_intermediate_size" },
  },
  kimi_linear: {
    latent: true,
    latentRotates: false,
    recurrent: kimiDelta,
    derived: kimiFields,
    experts: { grouped: true },
  },
  mamba: {},
  jamba: {
    unrotated: "unlessRope",
    biases: noBias,
    recurrent: jambaState,
    derived: jambaFields,
    experts: {},
  },
  bitnet: { innerNorms: true, derived: squareFields },
  // GLM-5
  glm_moe_dsa: { latent: true, interleaved: true, parts: sparseParts, experts: { grouped: true } },
  // DeepSeek-V3.2
  deepseek_v32: { latent: true, interleaved: true, parts: sparseParts, experts: { grouped: true } },
  apertus: { plain: true, xielu: true, queryKeyNorm: "head", rotation: apertusRotation },
  // Phi-3.5-MoE
  phimoe: {
    norm: { eps: "rms_norm_eps" },
    windows: "all",
    longRopeOnly: true,
    mscales: true,
    biases: { head: "lm_head_bias", feedForward: false },
    experts: { sparseMixer: true },
  },
  dbrx: {
    layersField: "n_layers",
    norm: { eps: 1e-5, bias: false },
    fused: "queryKeyValue",
    clips: true,
    biases: noBias,
    derived: dbrxFields,
    experts: {},
  },
  bamba: { partialRotation: 0.5, derived: bambaFields, recurrent: hybridStateSpace },
  falcon_mamba: {},
  persimmon: {
    norm: { eps: "layer_norm_eps" },
    plain: true,
    groupedHeads: true,
    queryKeyNorm: "headLayerNorm",
    queryKeyNormField: "qk_layernorm",
    partialRotation: 0.5,
    biases: { queryKeyValue: true, output: true, feedForward: true },
  },
  // Arcee's Trinity
  afmoe: {
    norms: "both",
    queryKeyNorm: "head",
    gatedHeads: "apart",
    scaledEmbeddings: "mup_enabled",
    windows: { every: 4 },
    unrotated: "unwindowed",
    biases: { feedForward: false },
    derived: afmoeFields,
    experts: { sigmoid: true, normalized: true, epsilon: 1e-20 },
  },
  // JetBrains' Mellum 2
  mellum: {
    queryKeyNorm: "head",
    windows: "all",
    localBase: 10_000,
    biases: { feedForward: false },
    derived: mellumFields,
    experts: {},
  },
  // Nemotron-H, Nemotron Nano 2 and 3
  nemotron_h: {
    plain: true,
    activationField: "mlp_hidden_act",
    biases: noAttentionBias,
    unrotated: "unlessRope",
    derived: nemotronFields,
    recurrent: nemotronStateSpace,
    parts: nemotronParts,
    experts: { grouped: true, bias: false, beside: "moe_shared_expert_intermediate_size" },
  },
});

/** The name of an architecture. */
export type ArchitectureName = keyof typeof architectures;

/** Returns a row with the general type, for code that reads any field. */
export const rowOf = (name: ArchitectureName): Architecture => architectures[name];

/** The model that a file describes. */
export interface Described {
  readonly name: ArchitectureName;
  readonly description: DecoderDescription;
}
