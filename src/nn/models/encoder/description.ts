/**
 * Descriptions of encoders as data. {@link Encoder} is built from a description and does not know architectures by
 * name. The tables of `src/nn/models/loading/encoder` convert the settings in files to descriptions.
 */
import type {
  DecoderDescription,
  FeedForwardDescription,
  NormDescription,
  RopeDescription,
} from "../decoder/description.ts";

/** A model whose tokens attend to all tokens of a text. */
export interface EncoderDescription {
  /** The name of the architecture: the `model_type` of Hugging Face. */
  readonly architecture: string;
  /** The number of tokens in the vocabulary. */
  readonly vocabularySize: number;
  /** The maximum number of tokens in a text. */
  readonly contextLength: number;
  /** The size of hidden states. */
  readonly width: number;
  /** All norms of the model. */
  readonly norm: NormDescription;
  /** The input of the first block. */
  readonly embeddings: EmbeddingsDescription;
  /** Whether norms are applied before attention and feed-forward, or to the sums after them. */
  readonly normPlace: "before" | "after";
  /** The blocks with different weights. */
  readonly layers: readonly EncoderLayerDescription[];
  /** The index in `layers` of each block that is applied, in order. Blocks may share weights. */
  readonly order: readonly number[];
  /** ALBERT's number of blocks in each group of `layers`, which checkpoints name by group. Default 1. */
  readonly groupSize?: number | undefined;
  /** Scores that depend on the distance between tokens. Default: none. */
  readonly distances?: BucketsDescription | DisentangledDescription | undefined;
  /** Whether there is a norm after the last block. */
  readonly finalNorm: boolean;
  /** A language model that computes the hidden states and replaces the embeddings and blocks. Default: none. */
  readonly decoder?: DecoderDescription | undefined;
  /** The head. Default: none; the model computes hidden states. */
  readonly head?: HeadDescription | undefined;
}

/** The embeddings of tokens, positions and token types. */
export interface EmbeddingsDescription {
  /** The size of the embeddings. If it differs from the model's, they are projected. */
  readonly width: number;
  /** Factor of the embeddings of tokens. Default 1. */
  readonly scale?: number | undefined;
  /** Whether there is a norm after the sum of the embeddings. */
  readonly norm: boolean;
  /** Positions. Default: none. */
  readonly positions?: PositionsDescription | undefined;
  /** The number of token types; 0: none. */
  readonly tokenTypes: number;
  /** The number of types of tasks, of which every text has the first. Default: none. */
  readonly taskTypes?: number | undefined;
  /** A projection to the size of hidden states, before or after the norm. Default: none. */
  readonly projection?: { readonly place: "before" | "after"; readonly bias: boolean } | undefined;
}

/** Embeddings of positions: learned, or fixed sines and cosines. */
export interface PositionsDescription {
  /** The number of rows in the table. */
  readonly count: number;
  /** The row of the first position: BART's is 2. Default 0. */
  readonly first?: number | undefined;
  /** Sinusoids as fixed rows. Default: the rows are learned. */
  readonly sinusoids?: SinusoidsDescription | undefined;
  /**
   * RoBERTa's positions: they count from `padding` + 1, and tokens that equal `padding` have the position `padding`.
   * Default: positions count from 0.
   */
  readonly padding?: number | undefined;
}

/**
 * Rows of sines and cosines. Row p is [sin(p · f₀), sin(p · f₁), …, cos(p · f₀), cos(p · f₁), …] with frequencies
 * fᵢ = 10000 ^ (−i / steps).
 *
 * Source: A. Vaswani et al., "Attention is all you need", 2017, section 3.5; `steps` is width / 2 there, and
 * width / 2 − 1 in fairseq's models.
 */
export interface SinusoidsDescription {
  /** The number of frequencies from 1 to 1 / 10000. */
  readonly steps: number;
  /** Whether frequencies and angles are rounded to float32, as fairseq's models were trained. */
  readonly rounded: boolean;
}

/** One block. */
export interface EncoderLayerDescription {
  /** Whether there is a norm of attention. ModernBERT's first block has none. */
  readonly attentionNorm: boolean;
  /** The attention of the block. */
  readonly attention: EncoderAttentionDescription;
  /** The feed-forward of the block. */
  readonly feedForward: FeedForwardDescription;
  /** Whether the results of attention and feed-forward have a learned factor for each element. Default false. */
  readonly layerScale?: boolean | undefined;
}

/** Attention of one block. */
export interface EncoderAttentionDescription {
  /** The number of heads. */
  readonly heads: number;
  /** The size of each head. */
  readonly headWidth: number;
  /** Whether the projections have biases. */
  readonly bias: boolean;
  /** Projections that differ from `bias`. Default: none. */
  readonly biases?: Readonly<Partial<Record<"query" | "key" | "value" | "output", boolean>>> | undefined;
  /** Whether a token attends only to itself and the tokens before it. Default false. */
  readonly causal?: boolean | undefined;
  /** Whether queries, keys and values are one projection, in this order. */
  readonly fused: boolean;
  /** Factor of the scores. Default 1 / √headWidth. */
  readonly scale?: number | undefined;
  /** The number of tokens on each side that a token attends to. Default: all. */
  readonly window?: number | undefined;
  /** Rotary position embeddings. Default: none. */
  readonly rope?: RopeDescription | undefined;
  /** ALiBi: a score decreases by the head's slope times the distance of the tokens. Default: no slopes. */
  readonly alibi?: readonly number[] | undefined;
  /** DeBERTa's projections of the embeddings of distances. Default: none. */
  readonly distances?: DistanceProjections | undefined;
  /** Whether a gate of each token multiplies the scores of distances, as in WavLM. Default false. */
  readonly gatedDistances?: boolean | undefined;
}

/** Scores of MPNet and T5: a learned number for each head and bucket of distances. */
export interface BucketsDescription {
  /** The type of the scores. */
  readonly kind: "buckets";
  /** The number of rows in the table. */
  readonly rows: number;
  /** The number of heads. */
  readonly heads: number;
  /** The number of buckets, if the table has more rows. MPNet always uses 32. Default: `rows`. */
  readonly count?: number | undefined;
  /** Distances from this one on share the last bucket. Default 128. */
  readonly longest?: number | undefined;
  /** Whether each block has a table, as in UMT5. Default false: all blocks share one. */
  readonly perBlock?: boolean | undefined;
}

/** DeBERTa's scores: products of queries and keys with embeddings of distances, which all blocks share. */
export interface DisentangledDescription {
  /** The type of the scores. */
  readonly kind: "disentangled";
  /** Distances from −span to span − 1 have an embedding; others have the nearest one. */
  readonly span: number;
  /** Distances of more than `buckets` / 2 tokens share embeddings, on a logarithmic scale. Default: none do. */
  readonly buckets?: { readonly count: number; readonly longest: number } | undefined;
  /** Whether the embeddings are normalized. */
  readonly norm: boolean;
}

/** Which products with embeddings of distances a block adds to its scores. */
export interface DistanceProjections {
  /** Whether queries are multiplied by the embeddings (DeBERTa's `c2p`). */
  readonly ofKeys: boolean;
  /** Whether keys are multiplied by the embeddings (DeBERTa's `p2c`). */
  readonly ofQueries: boolean;
  /** Whether attention's projections of queries and keys are used for the embeddings too. */
  readonly shared: boolean;
  /** Whether the projection of distance embeddings for queries has a bias. Default: as the other projections. */
  readonly keyBias?: boolean | undefined;
}

/** The tasks of heads. */
export type EncoderTask = "classify" | "tag" | "answer" | "fillMask";

/** A head: output(norm(activation(dense(x)))), where x is a hidden state. */
export interface HeadDescription {
  /** The task. `classify` has one result for each text, the others one for each token. */
  readonly task: EncoderTask;
  /** For `classify`: whether a text's hidden state is its first or its last token's, or the mean over all tokens. */
  readonly pooling?: "first" | "last" | "mean" | undefined;
  /** The layer before the output. Default: none. */
  readonly dense?: DenseDescription | undefined;
  /** The number of results; for `fillMask` the size of the vocabulary. */
  readonly outputs: number;
  /** Whether the output has a bias. */
  readonly bias: boolean;
  /** Whether the output shares the weight of the token embedding. */
  readonly tied: boolean;
}

/** A linear layer with an activation, and with or without a norm. */
export interface DenseDescription {
  /** The number of outputs. */
  readonly width: number;
  /** The activation. */
  readonly activation: EncoderActivation;
  /** Whether the layer has a bias. */
  readonly bias: boolean;
  /** Whether a norm follows. */
  readonly norm: boolean;
}

/** The activation of a head. */
export type EncoderActivation = "gelu" | "geluTanh" | "silu" | "relu" | "tanh";
