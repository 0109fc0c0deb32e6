/**
 * The architectures, as differences from Llama. A row is what its paper, or its code in Hugging Face's `transformers`,
 * says; `docs/models.md` has the table for readers. Llama's row is empty: RMSNorm before attention and feed-forward, no
 * biases, SwiGLU, rotary positions, causal attention to everything before.
 */
import type { DecoderDescription, FeedForwardDescription, NormPlaces } from "../decoder/description.ts";

type Activation = FeedForwardDescription["activation"];

/** How an architecture differs from Llama. */
export interface Architecture {
  /** For people. */
  readonly title: string;
  readonly norm?: "layerNorm";
  /** Where norms stand. Default before attention and feed-forward. */
  readonly norms?: NormPlaces;
  /** Whether weights of norms are stored as differences from 1. */
  readonly normsFromOne?: boolean;
  /** RMSNorm of queries and keys. */
  readonly queryKeyNorm?: "head" | "all";
  /** Whether queries, keys and values have biases. Default as `attention_bias` says, of all four projections. */
  readonly queryKeyValueBias?: boolean;
  /** Queries, keys and values are one weight, and so are gate and up. */
  readonly fused?: boolean;
  readonly activation?: Activation;
  /** Without a gate, the feed-forward is an MLP. */
  readonly plain?: boolean;
  /** Learned position embeddings, and no rotation. */
  readonly learnedPositions?: boolean;
  /** Embeddings are multiplied with √width. */
  readonly scaledEmbeddings?: boolean;
  /** Scores are multiplied with 1 / √query_pre_attn_scalar, not 1 / √headWidth. */
  readonly queryScalar?: boolean;
  /** Scores are capped, as `attn_logit_softcapping` says. */
  readonly softcaps?: boolean;
  /**
   * Which layers slide a window: `all`; all but every `every`-th; `upper`: all but the first `max_window_layers`. Files
   * may have their own `layer_types`. Default none.
   */
  readonly windows?: "all" | "upper" | { readonly every: number };
  /** Layers that slide have another base of rotation, and no scaling. */
  readonly localBase?: boolean;
  /** Mixtures of experts: probabilities divided by their sum, always or as `norm_topk_prob` says. */
  readonly experts?: "normalized" | "asConfigured";
  /** Part of a head may rotate, and LongRoPE is the only scaling of it, which older files call `su` or `yarn`. */
  readonly partialRotation?: boolean;
}

/** Gemma 2 and 3 have these in common. */
const gemma = {
  norms: "both",
  normsFromOne: true,
  activation: "geluTanh",
  scaledEmbeddings: true,
  queryScalar: true,
} as const satisfies Partial<Architecture>;

/** By the `model_type` of a `config.json`. */
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

/** The rows with all fields, for code that looks at any of them. */
export const rowOf = (name: ArchitectureName): Architecture => architectures[name];

/** What a file says: the model, and how its weights are named and stored. */
export interface Described {
  readonly name: ArchitectureName;
  readonly description: DecoderDescription;
}
