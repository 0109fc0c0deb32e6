/**
 * Descriptions of decoders as data. {@link Decoder} is built from a description and does not know architectures by
 * name. The tables of `src/nn/models/loading` convert the settings in files to descriptions.
 */
import type { RopeScaling } from "../../../ops/position/rope.ts";

/** A language model with blocks of attention and feed-forward around a residual stream. */
export interface DecoderDescription {
  /** The name of the architecture: the `model_type` of Hugging Face. */
  readonly architecture: string;
  /** The number of tokens in the vocabulary. */
  readonly vocabularySize: number;
  /** The maximum number of tokens in a sequence. */
  readonly contextLength: number;
  /** The size of hidden states. */
  readonly width: number;
  /** All norms of the model, except those of queries and keys. */
  readonly norm: NormDescription;
  /** Factor of the token embeddings. Default 1. */
  readonly embeddingScale?: number | undefined;
  /** Whether embeddings are normalized before the first block. Default false. */
  readonly embeddingNorm?: boolean | undefined;
  /** Whether positions have learned embeddings, `contextLength` of them. Default false. */
  readonly learnedPositions?: boolean | undefined;
  /** The dropout probability of embeddings in training. Default: no dropout layer. */
  readonly dropout?: number | undefined;
  /** Whether the output head shares the token embedding's weight. */
  readonly tied: boolean;
  /** Whether the output head has a bias. Default false. */
  readonly headBias?: boolean | undefined;
  /** Factor of the logits. Default 1. */
  readonly logitScale?: number | undefined;
  /** Logits become softcap · tanh(logits / softcap). Default: none. */
  readonly logitSoftcap?: number | undefined;
  /** Inputs of each layer besides the residual stream, computed from the tokens. Default: none. */
  readonly layerInputs?: LayerInputsDescription | undefined;
  /** The number of parallel residual streams, of which layers compute `active`. Default: one stream. */
  readonly streams?: { readonly count: number; readonly active: number } | undefined;
  /** The blocks, in order. */
  readonly layers: readonly LayerDescription[];
}

/** The per-layer embeddings of Gemma 3n and Gemma 4: a table with one vector for each pair of token and layer. */
export interface LayerInputsDescription {
  /** The number of tokens in the table. Other tokens use the vector of token 0. */
  readonly vocabularySize: number;
  /** The size of each vector. */
  readonly width: number;
}

/** The normalization of a model. */
export interface NormDescription {
  /** The type of norm. */
  readonly kind: "layerNorm" | "rmsNorm";
  /** Added to the variance or the mean square. */
  readonly eps: number;
  /** Whether a LayerNorm has a bias. Default true. */
  readonly bias?: boolean | undefined;
  /** Whether a LayerNorm has a weight; without one, it has no bias either. Default true. */
  readonly weight?: boolean | undefined;
}

/** One block. */
export interface LayerDescription {
  /** Where the block has norms. */
  readonly norms: NormPlaces;
  /**
   * Whether attention and feed-forward both read the block's input: through the same norm, or through one norm each.
   * Default: the feed-forward reads the output of attention.
   */
  readonly parallel?: "sharedNorm" | "separateNorms" | undefined;
  /** Factor of the outputs of attention and feed-forward before they are added to the residual. Default 1. */
  readonly residualScale?: number | undefined;
  /** The attention of the block; {@link noAttention} if it has none. */
  readonly attention: AttentionDescription;
  /** A recurrent layer instead of attention, or in parallel with it; then their outputs are added. Default: none. */
  readonly recurrent?: RecurrentDescription | undefined;
  /** The feed-forward of the block; {@link noFeedForward} if it has none. */
  readonly feedForward: FeedForwardDescription;
  /** The dropout probability, in training, of the outputs of attention and feed-forward. Default: no dropout layer. */
  readonly dropout?: number | undefined;
  /** The size and the activation of the layer's input besides the stream. Default: none. */
  readonly layerInput?:
    | { readonly width: number; readonly activation: FeedForwardDescription["activation"] }
    | undefined;
  /** Whether a learned number multiplies the output of the block. Default false. */
  readonly scaled?: boolean | undefined;
  /** Experts whose output is added to the feed-forward's, as in Gemma 4. Default: none. */
  readonly beside?: FeedForwardDescription | undefined;
  /** The parameters of AltUp, with which the block computes only one of several streams. Default: a single stream. */
  readonly altUp?: AltUpDescription | undefined;
}

/**
 * Gemma 3n's block: predicts all streams, computes one of them, and corrects the others by the difference.
 *
 * Source: C. Baykal et al., "Alternating updates for efficient transformers", 2023; for the low-rank residual
 * G. Menghani et al., "LAuReL: learned augmented residual layer", 2024.
 */
export interface AltUpDescription {
  readonly count: number;
  readonly active: number;
  /** Whether the computed stream is scaled by a learned vector before the layer's input is added. */
  readonly scaled: boolean;
  /** The rank of the low-rank residual. */
  readonly rank: number;
}

/** A layer whose tokens are mixed by a state of fixed size. */
export type RecurrentDescription =
  | ShortConvolutionDescription
  | StateSpaceDescription
  | SelectiveStateDescription
  | DeltaNetDescription
  | KimiDeltaDescription;

/** LFM2's gated convolution of the last `kernel` tokens. */
export interface ShortConvolutionDescription {
  readonly kind: "shortConvolution";
  readonly kernel: number;
  readonly bias: boolean;
}

/** Mamba 2's state space layer. */
export interface StateSpaceDescription {
  readonly kind: "stateSpace";
  readonly heads: number;
  readonly headWidth: number;
  /** The number of elements of B and C. */
  readonly stateSize: number;
  /** The number of groups of heads that share B and C. */
  readonly groups: number;
  /** The number of tokens of the convolution. */
  readonly kernel: number;
  /** Whether the projections have biases. */
  readonly bias: boolean;
  /** Whether the convolution has a bias. */
  readonly convolutionBias: boolean;
  /** Added to the mean square of the norm. */
  readonly eps: number;
  /** Whether the norm is applied after the gate, before it, or not at all. Default `"afterGate"`. */
  readonly norm?: "afterGate" | "beforeGate" | "none" | undefined;
  /** Whether the output projection has a bias. Default: as `bias`. */
  readonly outputBias?: boolean | undefined;
  /** Whether the layer runs in parallel with attention, which then advances the cache's token count. Default false. */
  readonly beside?: boolean | undefined;
  /** Factors of the input, of the projections z, x, B, C and δ (`parts`), and of the output. Default: all 1. */
  readonly factors?: { readonly input: number; readonly parts: readonly number[]; readonly output: number } | undefined;
  /** Bounds of step sizes. Default: none. */
  readonly limits: { readonly min: number; readonly max?: number | undefined };
}

/** The first Mamba's state space layer. */
export interface SelectiveStateDescription {
  readonly kind: "selectiveState";
  /** The number of elements that have a state. */
  readonly inner: number;
  /** The number of elements of B and C, and of each state. */
  readonly stateSize: number;
  /** The size of the vector from which step sizes are projected. */
  readonly rank: number;
  /** The number of tokens of the convolution. */
  readonly kernel: number;
  /** Whether the input and output projections have biases. */
  readonly bias: boolean;
  /** Whether the convolution has a bias. */
  readonly convolutionBias: boolean;
  /** The eps of RMSNorms of the step sizes' vector, of B and of C, as in Jamba. Default: no norms. */
  readonly normEps?: number | undefined;
  /** Whether these norms have weights. Default true. */
  readonly normWeights?: boolean | undefined;
}

/** Qwen3-Next's gated delta net. */
export interface DeltaNetDescription {
  readonly kind: "deltaNet";
  /** Whether z, b and a each have a separate weight, besides one for queries, keys and values together. */
  readonly apart: boolean;
  /**
   * Whether value head i uses key head i mod `keyHeads`, as in GGUF files. Default: adjacent value heads share a key
   * head.
   */
  readonly tiled?: boolean | undefined;
  readonly keyHeads: number;
  readonly valueHeads: number;
  readonly keyWidth: number;
  readonly valueWidth: number;
  /** The number of tokens of the convolution. */
  readonly kernel: number;
  /** Added to the mean square of the norm. */
  readonly eps: number;
}

/** Kimi Linear's delta attention. */
export interface KimiDeltaDescription {
  readonly kind: "kimiDelta";
  readonly heads: number;
  readonly headWidth: number;
  /** The number of tokens of the convolutions. */
  readonly kernel: number;
  /** Added to the mean square of the norm. */
  readonly eps: number;
}

/** A placeholder for blocks without attention: no heads. Without a recurrent layer, such a block has no mixer. */
export const noAttention: AttentionDescription = {
  heads: 0,
  keyValueHeads: 0,
  headWidth: 1,
  queryKeyValueBias: false,
  outputBias: false,
};

/** A placeholder for blocks without a feed-forward: no hidden elements. */
export const noFeedForward: FeedForwardDescription = { hidden: 0, gated: false, activation: "silu", bias: false };

/** Where norms are applied: before attention and feed-forward, to their outputs, or both. */
export type NormPlaces = "before" | "after" | "both";

/** Attention of one layer. */
export interface AttentionDescription {
  /** The number of query heads. */
  readonly heads: number;
  /** The number of key and value heads; `heads` is a multiple of it. */
  readonly keyValueHeads: number;
  /** The size of each head. */
  readonly headWidth: number;
  /** Whether the projections of queries, keys and values have biases. */
  readonly queryKeyValueBias: boolean;
  /** Whether the projection of keys, if it is separate, has a bias. Default `queryKeyValueBias`. */
  readonly keyBias?: boolean | undefined;
  /** Whether the output projection has a bias. */
  readonly outputBias: boolean;
  /** Queries, keys and values come from latent vectors. Default: each is one projection of the input. */
  readonly latent?: LatentDescription | undefined;
  /** Whether queries, keys and values are one projection, in this order. Default false. */
  readonly fused?: boolean | undefined;
  /**
   * Normalizes queries and keys: RMSNorm of each head before or after its rotation (`"head"`, `"rotatedHead"`), or of
   * all heads together; LayerNorm of each head with one weight and bias (`"headLayerNorm"`), or with a weight for each
   * head (`"headLayerNorms"`). Default: none.
   */
  readonly queryKeyNorm?: "head" | "rotatedHead" | "all" | "headLayerNorm" | "headLayerNorms" | undefined;
  /** Whether each head of queries and keys is normalized by RMSNorm without a weight after rotation. Default false. */
  readonly rotatedNorm?: boolean | undefined;
  /** Whether each head has a learned score that enters the softmax without a value. Default false. */
  readonly sinks?: boolean | undefined;
  /** Queries, keys and values are clamped to [−clip, clip]. Default: no limit. */
  readonly clip?: number | undefined;
  /** Scales queries by their positions, for long texts. Default: no scaling. */
  readonly temperature?: TemperatureDescription | undefined;
  /** The dropout probability of attention probabilities in training. Default 0. */
  readonly dropout?: number | undefined;
  /** Factors of the input and of the output. Default: both 1. */
  readonly factors?: { readonly input: number; readonly output: number } | undefined;
  /** Factor of the attention scores. Default 1 / √headWidth. */
  readonly scale?: number | undefined;
  /** Scores become softcap · tanh(score / softcap). Default: none. */
  readonly softcap?: number | undefined;
  /** Whether each head of values is normalized by RMSNorm without a weight. Default false. */
  readonly valueNorm?: boolean | undefined;
  /** Whether values are the projection of keys, before the norm and the rotation of keys. Default false. */
  readonly keysAsValues?: boolean | undefined;
  /**
   * The name of keys and values that layers share: one layer stores them, and later layers attend to them. Default:
   * each layer computes separate keys and values.
   */
  readonly sharing?: { readonly name: string; readonly stores: boolean } | undefined;
  /** Whether the heads' results are multiplied by the sigmoid of another projection of the input. Default false. */
  readonly gated?: boolean | undefined;
  /** Whether the projection of the gate has a bias. Default `queryKeyValueBias`. */
  readonly gateBias?: boolean | undefined;
  /** The eps of an RMSNorm of the heads' results before the output projection, as in BitNet. Default: no norm. */
  readonly innerNorm?: number | undefined;
  /** Number of tokens that a token attends to, including itself; without causal masking, on each side. Default: all. */
  readonly window?: number | undefined;
  /**
   * The number of tokens in a chunk. A token attends only to tokens in its chunk. Default: each text is one chunk.
   *
   * Source: Hugging Face's `create_chunked_causal_mask`.
   */
  readonly chunk?: number | undefined;
  /** Whether tokens also attend to later ones. Such a model cannot generate text. Default false. */
  readonly bidirectional?: boolean | undefined;
  /** Rotary position embeddings. Default: none. */
  readonly rope?: RopeDescription | undefined;
  /**
   * ALiBi: a score decreases by the head's slope times the distance between query and key. Default: no slopes.
   *
   * Source: O. Press et al., "Train short, test long: attention with linear biases", 2022.
   */
  readonly alibi?: readonly number[] | undefined;
}

/**
 * Multi-head latent attention. In each head, `rotated` elements rotate; `rope.dim` equals `rotated`.
 *
 * Source: DeepSeek-AI, "DeepSeek-V2", 2024, section 2.1.
 */
export interface LatentDescription {
  /** The size of the latent vector of queries. Default: queries are one projection of the input. */
  readonly queryRank?: number | undefined;
  /** The size of the latent vector of keys and values. */
  readonly rank: number;
  /** The number of elements of each head that rotate. All heads of keys share these elements. */
  readonly rotated: number;
  /** The size of each head of values. */
  readonly valueWidth: number;
  /** Queries attend only to the tokens that an indexer chooses. Default: to all. */
  readonly index?: IndexDescription | undefined;
}

/** The indexer of sparse attention, which chooses tokens for each query. */
export interface IndexDescription {
  /** The number of heads of the indexer's queries. */
  readonly heads: number;
  /** The size of each head of the indexer. */
  readonly headWidth: number;
  /** The maximum number of tokens that a query attends to. */
  readonly count: number;
  /** Whether rotated pairs of the indexer are adjacent elements. */
  readonly interleaved: boolean;
  /** Whether the layer has no indexer, and uses the choice of the layer before. */
  readonly shared: boolean;
}

/**
 * Attention temperature: multiplies the query at position p by 1 + beta · ln(1 + ⌊(p + offset) / length⌋).
 *
 * Source: Hugging Face's `get_llama_4_attn_scale` and `Llama4TextAttention`.
 */
export interface TemperatureDescription {
  /** The growth of the factor. */
  readonly beta: number;
  /** The number of positions per step of the factor. Queries at positions below `length − offset` are not scaled. */
  readonly length: number;
  /** An offset that is added to positions. Default 0. */
  readonly offset?: number | undefined;
}

/** Rotary position embeddings of one layer. */
export interface RopeDescription {
  /** The base (theta) of the rotation frequencies. */
  readonly base: number;
  /** Whether rotated pairs are adjacent elements. Default false: they come from the two halves of a head. */
  readonly interleaved?: boolean | undefined;
  /** Number of elements of each head that are rotated. Default: all. */
  readonly dim?: number | undefined;
  /** How rotations are scaled for a longer context. Default: no scaling. */
  readonly scaling?: RopeScaling | DynamicScaling | LongScaling | undefined;
  /**
   * For each pair, which position of an image's token rotates it: 0 for time, 1 for the row, 2 for the column. A token
   * of text has one position. Default: every token has one position.
   *
   * Source: P. Wang et al., "Qwen2-VL", 2024, section 2.1 (M-RoPE).
   */
  readonly axes?: readonly (0 | 1 | 2)[] | undefined;
}

/**
 * Dynamic NTK scaling: beyond the original context, the base of rotations grows with the length n of the text.
 *
 *     base · (factor · n / original − factor + 1) ^ (dim / (dim − 2))
 *
 * Source: Hugging Face's `_compute_dynamic_ntk_parameters`.
 */
export interface DynamicScaling {
  /** The type of scaling. */
  readonly type: "dynamic";
  /** The factor by which the context is extended. */
  readonly factor: number;
  /** The context length of the training, in tokens. */
  readonly originalContextLength: number;
}

/**
 * LongRoPE: each rotated pair has two factors, one for texts within the original context and one for longer texts.
 *
 * Source: Y. Ding et al., "LongRoPE: extending LLM context window beyond 2 million tokens", 2024.
 */
export interface LongScaling {
  /** The type of scaling. */
  readonly type: "longrope";
  /** Factors for texts within the original context, one per pair. */
  readonly short: readonly number[];
  /** Factors for longer texts, one per pair. */
  readonly long: readonly number[];
  /** The length up to which the short factors apply, in tokens. */
  readonly originalContextLength: number;
  /** Factor of the rotated queries and keys. */
  readonly attentionFactor: number;
}

/** The feed-forward of one layer: down(activation(gate(x)) · up(x)), or without a gate down(activation(up(x))). */
export interface FeedForwardDescription {
  /** The hidden size. */
  readonly hidden: number;
  /** Whether there is a gate projection. */
  readonly gated: boolean;
  /** The activation of the gate, or of up without a gate. */
  readonly activation: "silu" | "gelu" | "geluTanh" | "quickGelu" | "relu" | "reluSquared";
  /** Whether the activation is xIELU, whose parameters are learned, instead. Requires no gate. Default false. */
  readonly xielu?: boolean | undefined;
  /** The eps of an RMSNorm of the hidden elements before the down projection, as in BitNet. Default: no norm. */
  readonly innerNorm?: number | undefined;
  /**
   * The fraction of the gate's elements that become 0 if they are normally distributed: relu(gate − mean − std ·
   * quantile) replaces the gate. Default: none.
   */
  readonly sparsity?: number | undefined;
  /** Factors of the gate before the activation, and of the output. Default: both 1. */
  readonly factors?: { readonly gate: number; readonly output: number } | undefined;
  /** Whether the projections have biases. */
  readonly bias: boolean;
  /** Whether the down projection has a bias. Default: as `bias`. */
  readonly downBias?: boolean | undefined;
  /**
   * Whether gate and up are one projection: in this order, or with `"upGate"` in the other order. Default false.
   */
  readonly fused?: boolean | "upGate" | undefined;
  /**
   * The gated product is (clamp(up, −limit, limit) + 1) · g · sigmoid(alpha · g), where g = min(gate, limit). Default:
   * activation(gate) · up.
   *
   * Source: OpenAI, "gpt-oss-120b & gpt-oss-20b model card", 2025; Hugging Face's `GptOssExperts`.
   */
  readonly clamped?: { readonly alpha: number; readonly limit: number } | undefined;
  /** Replaces the feed-forward by a mixture of experts. Default: a single feed-forward. */
  readonly experts?: ExpertsDescription | undefined;
}

/** A mixture of experts: a router chooses some feed-forwards for each token. */
export interface ExpertsDescription {
  /** The number of experts. */
  readonly count: number;
  /** Number of experts for each token. */
  readonly perToken: number;
  /** Whether the probabilities of the chosen experts are divided by their sum. */
  readonly normalized: boolean;
  /** Added to the sum of the chosen experts' probabilities. Default 0. */
  readonly epsilon?: number | undefined;
  /** The minimum of the sum of the chosen experts' probabilities. Default: none. */
  readonly leastSum?: number | undefined;
  /** How the router's logits become probabilities: together, or each alone. Default `"softmax"`. */
  readonly scores?: "softmax" | "sigmoid" | undefined;
  /**
   * SparseMixer's threshold θ. A chosen expert with the logit m has the weight exp(m) / Σ exp(l) over the experts that
   * are not chosen yet and have (m − l) / max(|l|, m) ≤ θ. Default: weights are the probabilities.
   *
   * Source: L. Liu et al., "GRIN: gradient-informed MoE", 2024; Hugging Face's `sparsemixer`.
   */
  readonly mixerThreshold?: number | undefined;
  /** Whether the router has a bias. Default false. */
  readonly routerBias?: boolean | undefined;
  /** Whether the experts have biases, but for the one that computes every token. Default: as the feed-forward says. */
  readonly bias?: boolean | undefined;
  /** Whether a bias is added to the probabilities for the choice, but not for the weights. Default false. */
  readonly corrected?: boolean | undefined;
  /**
   * Divides the experts into `count` groups of equal size, and chooses experts only from `chosen` of the groups: those
   * in which the `best` largest probabilities have the largest sum.
   */
  readonly groups?: { readonly count: number; readonly chosen: number; readonly best: number } | undefined;
  /** Whether the weights of the chosen experts multiply their inputs instead of their outputs. Default false. */
  readonly scalesInputs?: boolean | undefined;
  /** Whether a learned number for each expert multiplies its weight. Default false. */
  readonly expertScales?: boolean | undefined;
  /** Factor of the weights of the chosen experts. Default 1. */
  readonly scale?: number | undefined;
  /** A feed-forward that computes every token, and whether a sigmoid gate scales its output. Default: none. */
  readonly shared?: { readonly hidden: number; readonly gated: boolean } | undefined;
}
