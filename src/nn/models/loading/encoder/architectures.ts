/**
 * The supported encoders, as differences from BERT. Each row follows the architecture's paper or its code in Hugging
 * Face's `transformers`; `docs/encoders.md` documents them. BERT has learned positions, token types, LayerNorm after
 * attention and feed-forward, biases, and an MLP.
 */
import type { EncoderActivation } from "../../encoder/description.ts";

/** How an encoder differs from BERT. */
export interface EncoderArchitecture {
  /** Positions. `afterPadding`: they count from the padding token + 1. Default: learned, counted from 0. */
  readonly positions?: "afterPadding" | "rotary" | "ifConfigured" | "alibi";
  /** The padding token from which positions count. Default: as the config says. */
  readonly padding?: number;
  /** Whether there are no token types, regardless of the config. */
  readonly noTokenTypes?: boolean;
  /** Whether the config may say that there are no token types. */
  readonly optionalTokenTypes?: boolean;
  /** Whether the config may say that texts have a type of task, of which only the first is used. */
  readonly taskTypes?: boolean;
  /** Whether there is no norm of embeddings. */
  readonly noEmbeddingNorm?: boolean;
  /**
   * Whether norms are before attention and feed-forward, with one after the last block; the first block's attention has
   * none, unless `everyBlock`.
   */
  readonly normsBefore?: true | "everyBlock";
  /** Whether attention has biases. Default true; `ifConfigured`: as `attention_bias` says. */
  readonly attentionBias?: false | "ifConfigured";
  /** Whether queries, keys and values are one weight. */
  readonly fused?: boolean;
  /**
   * Whether queries, keys and values are one weight whose rows are grouped by head, and only queries and values have
   * biases.
   */
  readonly headRows?: boolean;
  /** The feed-forward. Default: an MLP with biases. */
  readonly feedForward?: "gated" | "gatedFused" | "gatedUpGate" | "gatedDownBias";
  /** A projection of embeddings that are narrower than hidden states. Default: none. */
  readonly factorized?: "always" | "ifNarrower" | "ifNarrowerBeforeNorm";
  /** Whether blocks share weights, as `num_hidden_groups` says. */
  readonly shared?: boolean;
  /** Scores that depend on distances. */
  readonly distances?: "buckets" | "disentangled";
  /** Whether layers have local attention, as `layer_types` says. */
  readonly windows?: boolean;
  /** The layer before the output of a classifier of texts. Default: BERT's pooler. */
  readonly classifier?: ClassifierLayer;
  /** The layer before the output of masked tokens. Default: the config's activation, and a norm. */
  readonly masked?: { readonly activation?: EncoderActivation; readonly narrow?: boolean };
}

interface ClassifierLayer {
  /** `classifier` is ModernBERT's: the config names its activation and pooling. */
  readonly activation: EncoderActivation | "pooler" | "classifier";
}

const roberta = {
  positions: "afterPadding",
  masked: { activation: "gelu" },
} as const satisfies Partial<EncoderArchitecture>;

/** The encoders by the `model_type` of a `config.json`. */
export const encoderArchitectures = {
  // BERT, MiniLM, BGE, E5
  bert: {},
  // Jina Embeddings v2
  jina_bert: { positions: "alibi", feedForward: "gatedDownBias" },
  roberta: roberta,
  // XLM-RoBERTa, BGE-M3, multilingual E5
  "xlm-roberta": roberta,
  camembert: roberta,
  "data2vec-text": roberta,
  "roberta-prelayernorm": { ...roberta, normsBefore: "everyBlock" },
  "xlm-roberta-xl": { ...roberta, normsBefore: "everyBlock", noEmbeddingNorm: true },
  "megatron-bert": { normsBefore: "everyBlock", noEmbeddingNorm: true },
  // ERNIE 1 to 3
  ernie: { taskTypes: true },
  distilbert: { noTokenTypes: true, classifier: { activation: "relu" } },
  mpnet: { ...roberta, padding: 1, noTokenTypes: true, distances: "buckets" },
  albert: { factorized: "always", shared: true, masked: { narrow: true } },
  electra: {
    factorized: "ifNarrower",
    classifier: { activation: "gelu" },
    masked: { activation: "gelu", narrow: true },
  },
  modernbert: {
    positions: "rotary",
    noTokenTypes: true,
    normsBefore: true,
    fused: true,
    windows: true,
    attentionBias: "ifConfigured",
    feedForward: "gatedFused",
    classifier: { activation: "classifier" },
  },
  // Nomic Embed
  nomic_bert: {
    positions: "rotary",
    attentionBias: false,
    fused: true,
    feedForward: "gated",
  },
  gte: {
    positions: "rotary",
    optionalTokenTypes: true,
    fused: true,
    feedForward: "gatedUpGate",
    masked: { activation: "gelu" },
  },
  jina_embeddings_v3: {
    positions: "rotary",
    fused: true,
    masked: { activation: "gelu" },
  },
  deberta: {
    positions: "ifConfigured",
    optionalTokenTypes: true,
    headRows: true,
    distances: "disentangled",
    factorized: "ifNarrowerBeforeNorm",
    classifier: { activation: "pooler" },
  },
  // DeBERTa-v2, DeBERTa-v3
  "deberta-v2": {
    positions: "ifConfigured",
    optionalTokenTypes: true,
    distances: "disentangled",
    factorized: "ifNarrowerBeforeNorm",
    classifier: { activation: "pooler" },
  },
} as const satisfies Readonly<Record<string, EncoderArchitecture>>;

/** The name of an encoder's architecture. */
export type EncoderName = keyof typeof encoderArchitectures;

/** Whether a `model_type` belongs to an encoder. */
export const isEncoder = (type: unknown): type is EncoderName =>
  typeof type === "string" && Object.hasOwn(encoderArchitectures, type);

/** Returns the architecture of a config. Configs of Jina Embeddings v2 have the type `bert`, but with ALiBi. */
export const encoderNameOf = (type: EncoderName, config: object): EncoderName =>
  type === "bert" && (config as { position_embedding_type?: unknown }).position_embedding_type === "alibi"
    ? "jina_bert"
    : type;

/** Returns a row with the general type, for code that reads any field. */
export const encoderRow = (name: EncoderName): EncoderArchitecture => encoderArchitectures[name];
