import { ArgumentError, ShapeError } from "../core/errors.ts";
import { anObject, flag, listOf, someNumber } from "../core/kinds.ts";
import { type Kind, type Needed, named, parameters, required, unlisted } from "../core/parameters.ts";
import { flashAttention } from "../ops/attention/flash_attention.ts";
import { MOST_TOKENS, type StepRotation } from "../ops/attention/step.ts";
import { type RopeOptions, rope } from "../ops/position/rope.ts";
import { unflatten } from "../ops/view/flatten.ts";
import { transpose } from "../ops/view/permute.ts";
import { reshape } from "../ops/view/reshape.ts";
import { slice } from "../ops/view/slice.ts";
import { split } from "../ops/view/split.ts";
import { aTensor, expectTensor } from "../tensor/kinds.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { Attend, AttentionCache, Positions } from "./cache.ts";
import type { AttendStep } from "./cache_step.ts";
import { type LayerOptions, layerOptions } from "./initialization.ts";
import { layerParameters, optionsNamed, probability, size } from "./kinds.ts";
import { Linear } from "./linear.ts";
import { Module } from "./module.ts";
import type { QuantizedLinear } from "./quantized_linear.ts";
import { stepRotationOf } from "./step_rotation.ts";

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
  /** Whether a token attends to no later token. Default false. */
  causal?: boolean | undefined;
  /** Rotary position embeddings. Default: none. */
  rotary?: RotaryOptions | undefined;
}

/** What {@link MultiHeadAttention} takes besides x. */
export interface AttentionInputs {
  /** Keys and values of the previous tokens. Those of x are appended. */
  readonly cache?: AttentionCache | undefined;
  /** bool, true = attends; broadcast to [batch, heads, tokens, keys]. */
  readonly mask?: Tensor<"bool"> | undefined;
  /** The position of each token of x, for `rotary`: [batch, tokens]. Default: those that follow the cache's. */
  readonly positions?: Tensor<"int32"> | undefined;
  /**
   * @internal How long the text of each row is, or one number for all rows: with these tokens, without padding. Some
   * rotations depend on it. Default: the tokens of the cache and these.
   */
  readonly lengths?: readonly number[] | undefined;
}

const inputsParameters = unlisted("MultiHeadAttention.forward", {
  cache: named(anObject<AttentionCache>("a cache")),
  mask: named(aTensor as Kind<Tensor<"bool">>),
  positions: named(aTensor as Kind<Tensor<"int32">>),
  lengths: named(listOf(someNumber, "a list of lengths")),
});

/** @internal What {@link MultiHeadAttention} and the blocks around it take. */
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
 * Multi-head self-attention:
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
 * The three projections are one matrix product. Nothing is copied: heads are views, and query heads that share a key
 * and value head read the same memory.
 *
 * @example
 * const attention = new MultiHeadAttention({ width: 64, heads: 8, keyValueHeads: 2, causal: true, rotary: {} });
 * attention.forward(randn([2, 16, 64]));
 *
 * @throws {ArgumentError} for sizes below 1, a width that is not a multiple of `heads`, `heads` that is not a multiple
 * of `keyValueHeads`, and a dropout outside [0, 1).
 */
export class MultiHeadAttention extends Module<[x: Tensor, inputs?: AttentionInputs], Tensor> {
  readonly width: number;
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headWidth: number;
  readonly causal: boolean;
  readonly dropout: number;
  readonly rotary: RotaryOptions | undefined;
  readonly queryKeyValue: Linear | QuantizedLinear;
  readonly output: Linear | QuantizedLinear;
  /** Made at the first step of decoding. */
  #rotation: StepRotation | undefined;

  constructor(...values: Needed<AttentionOptions, "width">);
  constructor(...values: unknown[]) {
    super();
    const options = multiHeadAttentionParameters(values);
    const { width, heads, keyValueHeads = heads, bias, causal, dropout, rotary } = options;
    const headWidth = options.headWidth ?? dividedWidth(width, heads);
    checkGroups(heads, keyValueHeads);
    this.width = width;
    this.heads = heads;
    this.keyValueHeads = keyValueHeads;
    this.headWidth = headWidth;
    this.causal = causal;
    this.dropout = dropout;
    this.rotary = rotary;
    this.queryKeyValue = new Linear(width, (heads + 2 * keyValueHeads) * headWidth, { ...layerOptions(options), bias });
    this.output = new Linear(heads * headWidth, width, { ...layerOptions(options), bias, residual: true });
  }

  /** @param x [batch, tokens, width] @returns [batch, tokens, width] @throws {ShapeError} for another rank or width. */
  override forward(x: Tensor, inputs: AttentionInputs = {}): Tensor {
    expectTensor("MultiHeadAttention", "x", x);
    const { cache, mask, positions: given } = inputsParameters([inputs]);
    if (x.rank !== 3 || x.shape[2] !== this.width)
      throw new ShapeError(
        "MultiHeadAttention",
        "wrongShape",
        `expected x to have shape [batch, tokens, ${this.width}], got ${x.describe()}`,
      );
    const { keyValueHeads, heads } = this;
    const sizes = [heads, keyValueHeads, keyValueHeads].map((count) => count * this.headWidth);
    const parts = split(this.queryKeyValue.forward(x), sizes, { dim: -1 }) as [Tensor, Tensor, Tensor];
    const stepped = given || mask ? null : this.step(parts, cache);
    if (stepped) return this.output.forward(stepped);
    const [q, k, v] = parts.map((part) => this.splitHeads(part));
    const positions = given ?? cache?.positionsOf(x.shape[1]!) ?? 0;
    const queries = this.rotate(q!, positions);
    const appended = { keys: this.rotate(k!, positions), values: v! };
    const dropout = this.training ? this.dropout : 0;
    const attend: Attend = (queries, { keys, values }) =>
      flashAttention(queries, keys, values, { causal: this.causal, dropout, mask: lastOfMask(mask, keys) });
    const attended = cache?.attend(queries, appended, attend) ?? attend(queries, appended);
    return this.output.forward(reshape(transpose(attended, 1, 2), [...x.shape.slice(0, 2), heads * this.headWidth]));
  }

  /** Attention of a few tokens as one operation, where there is one. */
  private step(operands: AttendStep["operands"], cache: AttentionCache | undefined): Tensor | null {
    const { heads, keyValueHeads: kvHeads, headWidth, causal, dropout, training } = this;
    if (!cache || !causal || (training && dropout > 0) || operands[0].shape[1]! > MOST_TOKENS) return null;
    this.#rotation ??= stepRotationOf(this.rotary, headWidth);
    const formula = { scale: 1 / Math.sqrt(headWidth), rotation: this.#rotation };
    return cache.step({ operands, formula, heads, kvHeads, headWidth });
  }

  /** [batch, tokens, heads · headWidth] as a view [batch, heads, tokens, headWidth]. */
  private splitHeads(x: Tensor): Tensor {
    return transpose(unflatten(x, 2, [x.shape[2]! / this.headWidth, this.headWidth]), 1, 2);
  }

  private rotate(x: Tensor, positions: Positions): Tensor {
    if (!this.rotary) return x;
    const where = typeof positions === "number" ? { offset: positions } : { positions };
    return rope(x, { ...this.rotary, ...where });
  }

  /** @internal */
  override details(): string {
    const { heads, keyValueHeads, headWidth, dropout } = this;
    const shared = keyValueHeads === heads ? "" : `, keyValueHeads: ${keyValueHeads}`;
    return `heads: ${heads}${shared}, headWidth: ${headWidth}${dropout > 0 ? `, dropout: ${dropout}` : ""}`;
  }
}

/** @internal The part of a mask that is about the last keys, where a cache has dropped those before. */
export function lastOfMask(mask: Tensor<"bool"> | undefined, keys: Tensor): Tensor<"bool"> | undefined {
  const count = keys.shape[2]!;
  return mask && mask.shape.at(-1)! > count ? slice(mask, { dim: -1, start: -count }) : mask;
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
