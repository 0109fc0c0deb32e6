import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { flag } from "../../core/kinds.ts";
import { type Needed, named, parameters, required, unlisted } from "../../core/parameters.ts";
import type { RopeOptions } from "../../ops/position/rope.ts";
import { expectTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type LayerOptions, layerOptions } from "../layers/initialization.ts";
import { layerParameters, optionsNamed, probability, size } from "../layers/kinds.ts";
import type { Linear } from "../layers/linear.ts";
import type { QuantizedLinear } from "../quantized/linear.ts";
import { type AttentionInputs, attentionInputs, DecoderAttention } from "./decoder/attention.ts";
import type { AttentionDescription } from "./decoder/description.ts";

/** Rotary position embeddings of queries and keys: see `rope`. */
export type RotaryOptions = Pick<RopeOptions, "base" | "interleaved" | "dim" | "scaling">;

/** Options of {@link MultiHeadAttention}. */
export interface AttentionOptions extends LayerOptions {
  /** The size of the last axis of the input and the output. */
  width: number;
  /** The number of query heads. */
  heads: number;
  /** The number of key and value heads; `heads` is a multiple of it. Default `heads`. */
  keyValueHeads?: number | undefined;
  /** The size of each head. Default width / heads. */
  headWidth?: number | undefined;
  /** Whether the projections have biases. Default true. */
  bias?: boolean | undefined;
  /** The dropout probability of attention probabilities in training. Default 0. */
  dropout?: number | undefined;
  /** Whether each token attends only to itself and earlier tokens. Default false. */
  causal?: boolean | undefined;
  /** Rotary position embeddings. Default: none. */
  rotary?: RotaryOptions | undefined;
}

const inputsParameters = unlisted("MultiHeadAttention.forward", attentionInputs);

/** @internal Parameters that {@link MultiHeadAttention} and the blocks around it share. */
export const attentionParameters = {
  width: required(size),
  heads: required(size),
  keyValueHeads: named(size),
  headWidth: named(size),
  bias: named(flag, true),
  causal: named(flag, false),
  rotary: named(optionsNamed<RotaryOptions>("base", "interleaved", "dim", "scaling")),
  ...layerParameters,
} as const;

const multiHeadAttentionParameters = parameters("MultiHeadAttention", {
  ...attentionParameters,
  dropout: named(probability, 0),
});

/**
 * Applies multi-head self-attention:
 *
 *     q, k, v = split(queryKeyValue(x))                each a view, [batch, heads, tokens, headWidth]
 *     y = output(join(softmax(q kᵀ / √headWidth) v))   with `rotary`, q and k are rotated first
 *
 * | parameter | shape |
 * |---|---|
 * | `queryKeyValue.weight` | [(heads + 2 · keyValueHeads) · headWidth, width]: rows of q, then of k, then of v |
 * | `queryKeyValue.bias` | [(heads + 2 · keyValueHeads) · headWidth] |
 * | `output.weight` | [width, heads · headWidth] |
 * | `output.bias` | [width] |
 *
 * The three projections are one matrix product. Nothing is copied: heads are views, and query heads that share a
 * key/value head read the same memory.
 *
 * @example
 * const attention = new MultiHeadAttention({ width: 64, heads: 8, keyValueHeads: 2, causal: true, rotary: {} });
 * attention.forward(randn([2, 16, 64]));
 *
 * @throws {ArgumentError} for sizes below 1, a width that is not a multiple of `heads`, `heads` that is not a multiple
 * of `keyValueHeads`, and a dropout outside [0, 1).
 */
export class MultiHeadAttention extends DecoderAttention {
  declare readonly queryKeyValue: Linear | QuantizedLinear;
  declare readonly output: Linear | QuantizedLinear;
  readonly width: number;
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headWidth: number;
  readonly causal: boolean;
  readonly dropout: number;
  readonly rotary: RotaryOptions | undefined;

  constructor(...values: Needed<AttentionOptions, "width">);
  constructor(...values: unknown[]) {
    const options = multiHeadAttentionParameters(values);
    const { width, causal, dropout, rotary } = options;
    const attention = describeAttention(options);
    super({ ...layerOptions(options), width, attention });
    this.width = width;
    this.heads = attention.heads;
    this.keyValueHeads = attention.keyValueHeads;
    this.headWidth = attention.headWidth;
    this.causal = causal;
    this.dropout = dropout;
    this.rotary = rotary;
  }

  /** @param x [batch, tokens, width] @returns [batch, tokens, width] @throws {ShapeError} for another rank or width. */
  override forward(x: Tensor, inputs: AttentionInputs = {}): Tensor {
    expectTensor("MultiHeadAttention", "x", x);
    const options = inputsParameters([inputs]);
    if (x.rank === 3 && x.shape[2] === this.width) return super.forward(x, options);
    throw new ShapeError(
      "MultiHeadAttention",
      "wrongShape",
      `expected x to have shape [batch, tokens, ${this.width}], got ${x.describe()}`,
    );
  }
}

/** @internal Converts options to a description. @throws {ArgumentError} `headsDoNotDivide` */
export function describeAttention(options: AttentionOptions): AttentionDescription {
  const { width, heads, keyValueHeads = heads, bias = true, dropout, causal = false, rotary } = options;
  const headWidth = options.headWidth ?? dividedWidth(width, heads);
  checkGroups(heads, keyValueHeads);
  return {
    heads,
    keyValueHeads,
    headWidth,
    fused: true,
    queryKeyValueBias: bias,
    outputBias: bias,
    dropout,
    bidirectional: !causal,
    rope: rotary && { ...rotary, base: rotary.base ?? 10_000 },
  };
}

function dividedWidth(width: number, heads: number): number {
  if (width % heads === 0) return width / heads;
  throw new ArgumentError(
    "MultiHeadAttention",
    "headsDoNotDivide",
    `expected width to be a multiple of heads, got ${width} and ${heads}; change one of them, or pass headWidth`,
  );
}

function checkGroups(heads: number, keyValueHeads: number): void {
  if (heads % keyValueHeads === 0) return;
  throw new ArgumentError(
    "MultiHeadAttention",
    "headsDoNotDivide",
    `expected heads to be a multiple of keyValueHeads, got ${heads} and ${keyValueHeads}`,
  );
}
