import { choice, flag } from "../../core/kinds.ts";
import { named, parameters } from "../../core/parameters.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { Dropout } from "../layers/dropout.ts";
import { layerOptions } from "../layers/initialization.ts";
import { epsilon, probability, size } from "../layers/kinds.ts";
import type { Normalization } from "../layers/normalization.ts";
import { type AttentionOptions, attentionParameters, describeAttention, MultiHeadAttention } from "./attention.ts";
import type { AttentionInputs } from "./decoder/attention.ts";
import { DecoderBlock, type DecoderBlockOptions } from "./decoder/block.ts";
import { describeMLP, describeSwiGLU, type FeedForwardOptions, MLP, SwiGLU } from "./feed_forward.ts";

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
  /** The dropout probability, in training, of the outputs of attention and feed-forward. Default 0. */
  dropout?: number | undefined;
  /** The dropout probability of attention probabilities. Default 0. */
  attentionDropout?: number | undefined;
}

const tanh = { approximate: "tanh" } as const;

const feedForwards = {
  gelu: {
    make: (options: FeedForwardOptions) => new MLP(options),
    describe: (options: FeedForwardOptions) => describeMLP(options),
  },
  geluTanh: {
    make: (options: FeedForwardOptions) => new MLP({ ...options, ...tanh }),
    describe: (options: FeedForwardOptions) => describeMLP({ ...options, ...tanh }),
  },
  swiglu: {
    make: (options: FeedForwardOptions) => new SwiGLU(options),
    describe: (options: FeedForwardOptions) => describeSwiGLU(options),
  },
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
 * Applies a transformer layer with a norm before each part (pre-norm):
 *
 *     h = x + dropout(attention(attentionNorm(x)))
 *     y = h + dropout(feedForward(feedForwardNorm(h)))
 *
 * Its parameters belong to its submodules: `attentionNorm`, `attention`, `feedForwardNorm`, `feedForward`.
 *
 * @example
 * new TransformerBlock({ width: 64, heads: 4, causal: true }).forward(randn([2, 16, 64]));
 *
 * @throws {ArgumentError} as its submodules do.
 */
export class TransformerBlock extends DecoderBlock {
  declare readonly attentionNorm: Normalization;
  declare readonly attention: MultiHeadAttention;
  declare readonly feedForwardNorm: Normalization;
  declare readonly feedForward: MLP | SwiGLU;
  declare readonly dropout: Dropout;

  constructor(options: BlockOptions);
  constructor(...values: unknown[]) {
    const options = blockParameters(values);
    super(describeBlock(options), {
      attention: () => new MultiHeadAttention(attentionOf(options)),
      feedForward: () => feedForwards[options.feedForward].make(feedForwardOf(options)),
    });
  }

  /** @param x [batch, tokens, width] @returns [batch, tokens, width] @throws {ShapeError} for another rank or width. */
  override forward(x: Tensor, inputs: AttentionInputs = {}): Tensor {
    return super.forward(x, inputs);
  }
}

/** @internal Converts options to a description. @throws {ArgumentError} as {@link MultiHeadAttention} does. */
export function describeBlock(options: BlockOptions): DecoderBlockOptions {
  const { width, norm: kind = "layerNorm", bias, feedForward = "gelu", dropout = 0 } = options;
  return {
    ...layerOptions(options),
    width,
    norm: { kind, bias, eps: options.eps ?? (kind === "layerNorm" ? 1e-5 : 1e-6) },
    layer: {
      norms: "before",
      attention: describeAttention(attentionOf(options)),
      feedForward: feedForwards[feedForward].describe(feedForwardOf(options)),
      dropout,
    },
  };
}

function attentionOf(options: BlockOptions): AttentionOptions {
  const { width, heads, keyValueHeads, headWidth, bias, causal, rotary, attentionDropout: dropout } = options;
  return { ...layerOptions(options), width, heads, keyValueHeads, headWidth, bias, causal, rotary, dropout };
}

function feedForwardOf(options: BlockOptions): FeedForwardOptions {
  const { width, hidden, bias, feedForwardBias = bias } = options;
  return { ...layerOptions(options), width, hidden, bias: feedForwardBias };
}
