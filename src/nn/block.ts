import { choice, flag } from "../core/kinds.ts";
import { named, parameters } from "../core/parameters.ts";
import { add } from "../ops/elementwise/arithmetic.ts";
import type { SumAndNorm } from "../ops/normalization/normalize.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import { type AttentionInputs, type AttentionOptions, attentionParameters, MultiHeadAttention } from "./attention.ts";
import { Dropout } from "./dropout.ts";
import { type FeedForwardOptions, MLP, SwiGLU } from "./feed_forward.ts";
import { layerOptions } from "./initialization.ts";
import { epsilon, probability, size } from "./kinds.ts";
import { Module } from "./module.ts";
import { LayerNorm, type Normalization, RMSNorm } from "./normalization.ts";

/** Options of {@link TransformerBlock}. */
export interface BlockOptions extends Omit<AttentionOptions, "dropout"> {
  /** The normalization before attention and before the feed-forward. Default `"layerNorm"`. */
  norm?: "layerNorm" | "rmsNorm" | undefined;
  /** The eps of the norms. Default: 1e-5 for LayerNorm, 1e-6 for RMSNorm. */
  eps?: number | undefined;
  /** The feed-forward: an {@link MLP} with gelu or its tanh approximation, or {@link SwiGLU}. Default `"gelu"`. */
  feedForward?: keyof typeof feedForwards | undefined;
  /** The hidden size of the feed-forward. Default 4 · width. */
  hidden?: number | undefined;
  /** Whether the feed-forward's projections have biases. Default `bias`. */
  feedForwardBias?: boolean | undefined;
  /** The dropout probability, in training, of what is added to the residual stream. Default 0. */
  dropout?: number | undefined;
  /** The dropout probability of attention probabilities. Default 0. */
  attentionDropout?: number | undefined;
}

const feedForwards = {
  gelu: (options: FeedForwardOptions) => new MLP(options),
  geluTanh: (options: FeedForwardOptions) => new MLP({ ...options, approximate: "tanh" }),
  swiglu: (options: FeedForwardOptions) => new SwiGLU(options),
} as const;

const blockParameters = parameters("TransformerBlock", {
  ...attentionParameters,
  norm: named(choice("layerNorm", "rmsNorm"), "layerNorm"),
  eps: named(epsilon),
  feedForward: named(choice("gelu", "geluTanh", "swiglu"), "gelu"),
  hidden: named(size),
  feedForwardBias: named(flag),
  dropout: named(probability, 0),
  attentionDropout: named(probability, 0),
});

/**
 * A transformer layer, normalized before each part (pre-norm):
 *
 *     h = x + dropout(attention(attentionNorm(x)))
 *     y = h + dropout(feedForward(feedForwardNorm(h)))
 *
 * Its parameters are those of its submodules: `attentionNorm`, `attention`, `feedForwardNorm`, `feedForward`.
 *
 * @example
 * new TransformerBlock({ width: 64, heads: 4, causal: true }).forward(randn([2, 16, 64]));
 *
 * @throws {ArgumentError} as its submodules do.
 */
export class TransformerBlock extends Module<[x: Tensor, inputs?: AttentionInputs], Tensor> {
  readonly attentionNorm: Normalization;
  readonly attention: MultiHeadAttention;
  readonly feedForwardNorm: Normalization;
  readonly feedForward: MLP | SwiGLU;
  readonly dropout: Dropout;

  constructor(options: BlockOptions);
  constructor(...values: unknown[]) {
    super();
    const { norm, eps, feedForward, hidden, feedForwardBias, dropout, attentionDropout, ...attention } =
      blockParameters(values);
    const { width, bias } = attention;
    const layer = layerOptions(attention);
    const newNorm = (): Normalization =>
      norm === "layerNorm" ? new LayerNorm(width, { ...layer, eps, bias }) : new RMSNorm(width, { ...layer, eps });
    this.attentionNorm = newNorm();
    this.attention = new MultiHeadAttention({ ...attention, dropout: attentionDropout });
    this.feedForwardNorm = newNorm();
    this.feedForward = feedForwards[feedForward]({ ...layer, width, hidden, bias: feedForwardBias ?? bias });
    this.dropout = new Dropout(dropout);
  }

  /** @param x [batch, tokens, width] @returns [batch, tokens, width] @throws {ShapeError} for another rank or width. */
  override forward(x: Tensor, inputs: AttentionInputs = {}): Tensor {
    return tidy(() => sumOf(this.advance({ residual: x }, inputs)));
  }

  /**
   * @internal The same on a {@link ResidualStream}, whose sum is fused with the norm that follows. Intermediate results
   * are freed at once, so that the next block reuses memory that is still in a cache.
   */
  advance(stream: ResidualStream, inputs: AttentionInputs = {}): Required<ResidualStream> {
    return tidy(() => {
      const before = normalize(this.attentionNorm, stream);
      const attended = this.dropout.forward(this.attention.forward(before.out, inputs));
      const { sum, out } = this.feedForwardNorm.addForward(attended, before.sum);
      return { residual: sum, addition: this.dropout.forward(this.feedForward.forward(out)) };
    });
  }
}

/** @internal The stream residual + addition between two blocks. The norm that follows computes the sum. */
export interface ResidualStream {
  readonly residual: Tensor;
  readonly addition?: Tensor;
}

/** @internal The sum of a stream, and its norm. */
export const normalize = (norm: Normalization, { residual, addition }: ResidualStream): SumAndNorm =>
  addition ? norm.addForward(addition, residual) : { sum: residual, out: norm.forward(residual) };

/** @internal The sum of a stream. */
export const sumOf = ({ residual, addition }: ResidualStream): Tensor =>
  addition ? (add(addition, residual) as Tensor) : residual;
