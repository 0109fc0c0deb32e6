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
  /** Which projections have biases; `attention`: as `attention_bias` says, of all four. Default `attention`. */
  readonly biases?: "attention" | "queryKeyValue" | "all" | "none";
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
  /** Scores and logits are capped. */
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
  /** Whether the head is the token embedding's weight where a config does not say it. */
  readonly tied?: boolean;
  /** What a config that leaves it out means. */
  readonly eps?: number;
  readonly ropeBase?: number;
  /** The size of heads where a config leaves it out. Default width / heads. */
  readonly headWidth?: number;
}

/** Gemma 2 and 3 have these in common. */
const gemma = {
  norms: "both",
  normsFromOne: true,
  activation: "geluTanh",
  scaledEmbeddings: true,
  queryScalar: true,
  tied: true,
  headWidth: 256,
} as const satisfies Partial<Architecture>;

/** By the `model_type` of a `config.json`. */
export const architectures = {
  gpt2: {
    ...{ title: "GPT-2", norm: "layerNorm", biases: "all", fused: true, activation: "geluTanh", plain: true },
    ...{ learnedPositions: true, tied: true, eps: 1e-5 },
  },
  llama: { title: "Llama 1, 2, 3; SmolLM, TinyLlama, Yi" },
  mistral: { title: "Mistral", biases: "none", windows: "all" },
  mixtral: { title: "Mixtral", biases: "none", windows: "all", experts: "normalized", eps: 1e-5, ropeBase: 1e6 },
  qwen2: { title: "Qwen2, Qwen2.5", biases: "queryKeyValue", windows: "upper" },
  qwen3: { title: "Qwen3", queryKeyNorm: "head", windows: "upper", headWidth: 128 },
  qwen3_moe: { title: "Qwen3-MoE", queryKeyNorm: "head", windows: "all", experts: "asConfigured" },
  gemma2: { ...gemma, title: "Gemma 2", softcaps: true, windows: { every: 2 } },
  gemma3_text: {
    ...gemma,
    title: "Gemma 3",
    queryKeyNorm: "head",
    windows: { every: 6 },
    localBase: true,
    ropeBase: 1e6,
  },
  phi3: { title: "Phi-3", biases: "none", fused: true, windows: "all", eps: 1e-5 },
  olmo2: { title: "OLMo 2", norms: "after", queryKeyNorm: "all", eps: 1e-5 },
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
