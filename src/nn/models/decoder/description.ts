/**
 * What decoders differ in, as data: {@link Decoder} is built of it, and nothing else knows a model's name. The tables
 * of `src/nn/models/loading` make descriptions of the settings in files.
 */
import type { RopeScaling } from "../../../ops/position/rope.ts";

/** A language model of blocks of attention and feed-forward around a residual stream. */
export interface DecoderDescription {
  /** The name of the architecture: the `model_type` of Hugging Face. */
  readonly architecture: string;
  readonly vocabularySize: number;
  /** The maximum number of tokens in a sequence. */
  readonly contextLength: number;
  /** The size of hidden states. */
  readonly width: number;
  readonly norm: NormDescription;
  /** What embeddings are multiplied with. Default 1. */
  readonly embeddingScale?: number | undefined;
  /** Whether positions have learned embeddings, `contextLength` of them. Default false. */
  readonly learnedPositions?: boolean | undefined;
  /** The dropout probability of embeddings in training. Default: the model has no such layer. */
  readonly dropout?: number | undefined;
  /** Whether the output head is the token embedding's weight. */
  readonly tied: boolean;
  /** Logits become softcap · tanh(logits / softcap). Default: none. */
  readonly logitSoftcap?: number | undefined;
  /** One for each layer. */
  readonly layers: readonly LayerDescription[];
}

/** The normalization of a model. */
export interface NormDescription {
  readonly kind: "layerNorm" | "rmsNorm";
  readonly eps: number;
  /** Whether a LayerNorm has a bias. Default true. */
  readonly bias?: boolean | undefined;
}

/** One block. */
export interface LayerDescription {
  readonly norms: NormPlaces;
  readonly attention: AttentionDescription;
  readonly feedForward: FeedForwardDescription;
  /**
   * The dropout probability, in training, of what attention and feed-forward add to the residual stream. Default: the
   * block has no such layer.
   */
  readonly dropout?: number | undefined;
}

/** Where norms stand: before attention and feed-forward, on what they add to the residual stream, or on both sides. */
export type NormPlaces = "before" | "after" | "both";

/** Attention of one layer. */
export interface AttentionDescription {
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headWidth: number;
  /** Whether the projections of queries, keys and values have biases. */
  readonly queryKeyValueBias: boolean;
  readonly outputBias: boolean;
  /** Whether queries, keys and values are one projection, in this order. Default false. */
  readonly fused?: boolean | undefined;
  /** RMSNorm of queries and keys: of each head, or of all heads together. Default: none. */
  readonly queryKeyNorm?: "head" | "all" | undefined;
  /** The dropout probability of attention probabilities in training. Default 0. */
  readonly dropout?: number | undefined;
  /** What scores are multiplied with. Default 1 / √headWidth. */
  readonly scale?: number | undefined;
  /** Scores become softcap · tanh(score / softcap). Default: none. */
  readonly softcap?: number | undefined;
  /** How many tokens a token attends to, itself included, on each side that it attends to. Default: all. */
  readonly window?: number | undefined;
  /** Whether a token attends to later ones too. Such a model computes no text token by token. Default false. */
  readonly bidirectional?: boolean | undefined;
  /** Rotary position embeddings. Default: none. */
  readonly rope?: RopeDescription | undefined;
}

/** Rotary position embeddings of one layer. */
export interface RopeDescription {
  readonly base: number;
  /** Whether rotated pairs are adjacent elements. Default false: they come from the two halves of a head. */
  readonly interleaved?: boolean | undefined;
  /** How many elements of a head rotate. Default all. */
  readonly dim?: number | undefined;
  readonly scaling?: RopeScaling | DynamicScaling | LongScaling | undefined;
}

/**
 * The base grows with the length n of the text, beyond the original context: base · (factor · n / original − factor +
 * 1) ^ (dim / (dim − 2)).
 *
 * Source: Hugging Face's `_compute_dynamic_ntk_parameters`.
 */
export interface DynamicScaling {
  readonly type: "dynamic";
  readonly factor: number;
  readonly originalContextLength: number;
}

/**
 * Each pair has a factor of its own, one for texts within the original context and one for longer ones.
 *
 * Source: Y. Ding et al., "LongRoPE: extending LLM context window beyond 2 million tokens", 2024.
 */
export interface LongScaling {
  readonly type: "longrope";
  readonly short: readonly number[];
  readonly long: readonly number[];
  readonly originalContextLength: number;
  /** What results are multiplied with. */
  readonly attentionFactor: number;
}

/** The feed-forward of one layer: down(activation(gate(x)) · up(x)), or without a gate down(activation(up(x))). */
export interface FeedForwardDescription {
  readonly hidden: number;
  readonly gated: boolean;
  readonly activation: "silu" | "gelu" | "geluTanh";
  readonly bias: boolean;
  /** Whether gate and up are one projection, in this order. Default false. */
  readonly fused?: boolean | undefined;
  /** Several of them, of which a router chooses some for each token. Default: one. */
  readonly experts?: ExpertsDescription | undefined;
}

/** A mixture of experts. */
export interface ExpertsDescription {
  readonly count: number;
  /** How many of them each token goes to. */
  readonly perToken: number;
  /** Whether the probabilities of those chosen are divided by their sum. */
  readonly normalized: boolean;
}
