/**
 * The supported architectures, as differences from Llama. Each row follows the architecture's paper or its code in
 * Hugging Face's `transformers`; `docs/models.md` documents them. Llama has RMSNorm before attention and feed-forward,
 * no biases, SwiGLU, rotary positions, and causal attention without a window.
 */
import type { DecoderDescription, FeedForwardDescription, NormPlaces } from "../decoder/description.ts";

type Activation = FeedForwardDescription["activation"];

/** How an architecture differs from Llama. */
export interface Architecture {
  /** Name for users. */
  readonly title: string;
  readonly norm?: "layerNorm";
  /** Where norms are applied. Default: before attention and feed-forward. */
  readonly norms?: NormPlaces;
  /** Whether weights of norms are stored as differences from 1. */
  readonly normsFromOne?: boolean;
  /** RMSNorm of queries and keys, per head or over all heads. */
  readonly queryKeyNorm?: "head" | "all";
  /** Whether queries, keys and values have biases. Default: as `attention_bias` says, for all four projections. */
  readonly queryKeyValueBias?: boolean;
  /** Whether queries, keys and values are one weight, and gate and up another. */
  readonly fused?: boolean;
  readonly activation?: Activation;
  /** Whether the feed-forward is an MLP without a gate. */
  readonly plain?: boolean;
  /** Whether positions have learned embeddings instead of rotations. */
  readonly learnedPositions?: boolean;
  /** Whether embeddings are multiplied by √width. */
  readonly scaledEmbeddings?: boolean;
  /** Whether scores are multiplied by 1 / √query_pre_attn_scalar instead of 1 / √headWidth. */
  readonly queryScalar?: boolean;
  /** Whether scores are soft-capped by `attn_logit_softcapping`. */
  readonly softcaps?: boolean;
  /**
   * Which layers have a sliding window: all; all but every `every`-th; or with `upper` all but the first
   * `max_window_layers`. A file's `layer_types` takes precedence. Default: none.
   */
  readonly windows?: "all" | "upper" | { readonly every: number };
  /** Whether layers with a window have another rotation base, without scaling. */
  readonly localBase?: boolean;
  /** Whether a mixture of experts divides probabilities by their sum: always, or as `norm_topk_prob` says. */
  readonly experts?: "normalized" | "asConfigured";
  /**
   * Whether only part of each head may rotate. LongRoPE is then the only scaling; older files call it `su` or `yarn`.
   */
  readonly partialRotation?: boolean;
}

/** Fields that Gemma 2 and 3 share. */
const gemma = {
  norms: "both",
  normsFromOne: true,
  activation: "geluTanh",
  scaledEmbeddings: true,
  queryScalar: true,
} as const satisfies Partial<Architecture>;

/** The architectures by the `model_type` of a `config.json`. */
export const architectures = {
  gpt2: {
    ...{ title: "GPT-2", norm: "layerNorm", fused: true, activation: "geluTanh", plain: true },
    learnedPositions: true,
  },
  llama: { title: "Llama 1, 2, 3; SmolLM, TinyLlama, Yi" },
  mistral: { title: "Mistral", windows: "all" },
  mixtral: { title: "Mixtral", windows: "all", experts: "normalized" },
  qwen2: { title: "Qwen2, Qwen2.5", queryKeyValueBias: true, windows: "upper" },
  qwen3: { title: "Qwen3", queryKeyNorm: "head", windows: "upper" },
  qwen3_moe: { title: "Qwen3-MoE", queryKeyNorm: "head", windows: "all", experts: "asConfigured" },
  gemma2: { ...gemma, title: "Gemma 2", softcaps: true, windows: { every: 2 } },
  gemma3_text: { ...gemma, title: "Gemma 3", queryKeyNorm: "head", windows: { every: 6 }, localBase: true },
  phi3: { title: "Phi-3", fused: true, windows: "all", partialRotation: true },
  olmo2: { title: "OLMo 2", norms: "after", queryKeyNorm: "all" },
} as const satisfies Readonly<Record<string, Architecture>>;

/** The name of an architecture. */
export type ArchitectureName = keyof typeof architectures;

/** Returns a row with the general type, for code that reads any field. */
export const rowOf = (name: ArchitectureName): Architecture => architectures[name];

/** The model that a file describes. */
export interface Described {
  readonly name: ArchitectureName;
  readonly description: DecoderDescription;
}
