import { ArgumentError, ShapeError } from "../core/errors.ts";
import { flashAttention } from "../ops/attention/flash_attention.ts";
import { type RopeOptions, rope } from "../ops/position/rope.ts";
import { unflatten } from "../ops/view/flatten.ts";
import { transpose } from "../ops/view/permute.ts";
import { reshape } from "../ops/view/reshape.ts";
import { split } from "../ops/view/split.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { AttentionCache } from "./cache.ts";
import { checkCounts, checkProbability } from "./checks.ts";
import { type LayerOptions, layerOptions } from "./initialization.ts";
import { Linear } from "./linear.ts";
import { Module } from "./module.ts";

/** How queries and keys turn by their positions: see `rope`. */
export type RotaryOptions = Pick<RopeOptions, "base" | "interleaved" | "dim" | "scaling">;

/** What {@link MultiHeadAttention} is made of. */
export interface AttentionOptions extends LayerOptions {
  /** The size of the last axis of what comes in and goes out. */
  width: number;
  /** How many heads of queries. */
  heads: number;
  /** How many heads of keys and values, of which `heads` is a multiple. Default `heads`. */
  keyValueHeads?: number | undefined;
  /** The size of each head. Default width / heads. */
  headWidth?: number | undefined;
  /** Whether the projections have biases. Default true. */
  bias?: boolean | undefined;
  /** The probability with which a probability of attention is dropped in training. Default 0. */
  dropout?: number | undefined;
  /** Whether a token attends to no later one. Default false. */
  causal?: boolean | undefined;
  /** Rotary positions. Default: none. */
  rotary?: RotaryOptions | undefined;
}

/** What {@link MultiHeadAttention} takes beside x. */
export interface AttentionInputs {
  /** Keys and values of the tokens before these, to which theirs are added. */
  readonly cache?: AttentionCache | undefined;
  /** bool, true = attends; broadcasts to [batch, heads, tokens, keys]. */
  readonly mask?: Tensor<"bool"> | undefined;
}

/**
 * Attention of a sequence to itself, in several heads:
 *
 *     q, k, v = split(queryKeyValue(x))                each a view, [batch, heads, tokens, headWidth]
 *     y = output(join(softmax(q kᵀ / √headWidth) v))   q and k turned by their positions before, where they are rotary
 *
 * | parameter | shape |
 * |---|---|
 * | `queryKeyValue.weight` | [(heads + 2 · keyValueHeads) · headWidth, width]: rows of the queries' heads, then of the keys', then of the values' |
 * | `queryKeyValue.bias` | [(heads + 2 · keyValueHeads) · headWidth] |
 * | `output.weight` | [width, heads · headWidth] |
 * | `output.bias` | [width] |
 *
 * The three projections are one product. Nothing is copied on the way: heads are views, and those that share keys and values read the same ones.
 *
 * @example
 * new MultiHeadAttention({ width: 64, heads: 8, keyValueHeads: 2, causal: true, rotary: {} }).forward(randn([2, 16, 64]));
 *
 * @throws {ArgumentError} for sizes below 1, heads that do not divide the width or are no multiple of `keyValueHeads`, and a dropout
 * outside [0, 1).
 */
export class MultiHeadAttention extends Module<[x: Tensor, inputs?: AttentionInputs], Tensor> {
  readonly width: number;
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headWidth: number;
  readonly causal: boolean;
  readonly dropout: number;
  readonly rotary: RotaryOptions | undefined;
  readonly queryKeyValue: Linear;
  readonly output: Linear;

  constructor(options: AttentionOptions) {
    super();
    const { width, heads, keyValueHeads = heads, bias = true, causal = false, dropout = 0, rotary } = options;
    checkCounts("MultiHeadAttention", { width, heads, keyValueHeads });
    const headWidth = options.headWidth ?? dividedWidth(width, heads);
    checkCounts("MultiHeadAttention", { headWidth });
    checkGroups(heads, keyValueHeads);
    this.width = width;
    this.heads = heads;
    this.keyValueHeads = keyValueHeads;
    this.headWidth = headWidth;
    this.causal = causal;
    this.dropout = checkProbability("MultiHeadAttention", "dropout", dropout);
    this.rotary = rotary;
    this.queryKeyValue = new Linear(width, (heads + 2 * keyValueHeads) * headWidth, { ...layerOptions(options), bias });
    this.output = new Linear(heads * headWidth, width, { ...layerOptions(options), bias, residual: true });
  }

  /** @param x [batch, tokens, width] @returns [batch, tokens, width] @throws {ShapeError} for another rank or width. */
  override forward(x: Tensor, { cache, mask }: AttentionInputs = {}): Tensor {
    if (x.rank !== 3 || x.shape[2] !== this.width)
      throw new ShapeError(
        "MultiHeadAttention",
        "wrongShape",
        `[batch, tokens, ${this.width}] is wanted, ${x.describe()} came`,
      );
    const { keyValueHeads, heads } = this;
    const sizes = [heads, keyValueHeads, keyValueHeads].map((count) => count * this.headWidth);
    const [q, k, v] = split(this.queryKeyValue.forward(x), sizes, { dim: -1 }).map((part) => this.inHeads(part));
    const offset = cache?.position ?? 0;
    const [queries, ownKeys] = [this.turned(q!, offset), this.turned(k!, offset)];
    const { keys, values } = cache?.append({ keys: ownKeys, values: v! }) ?? { keys: ownKeys, values: v! };
    const dropout = this.training ? this.dropout : 0;
    const attended = flashAttention(queries, keys, values, { causal: this.causal, dropout, mask });
    return this.output.forward(reshape(transpose(attended, 1, 2), [...x.shape.slice(0, 2), heads * this.headWidth]));
  }

  /** [batch, tokens, heads · headWidth] as a view [batch, heads, tokens, headWidth]. */
  private inHeads(x: Tensor): Tensor {
    return transpose(unflatten(x, 2, [x.shape[2]! / this.headWidth, this.headWidth]), 1, 2);
  }

  private turned(x: Tensor, offset: number): Tensor {
    return this.rotary ? rope(x, { ...this.rotary, offset }) : x;
  }

  /** @internal */
  override details(): string {
    const { heads, keyValueHeads, headWidth, dropout } = this;
    const shared = keyValueHeads === heads ? "" : `, keyValueHeads: ${keyValueHeads}`;
    return `heads: ${heads}${shared}, headWidth: ${headWidth}${dropout > 0 ? `, dropout: ${dropout}` : ""}`;
  }
}

function dividedWidth(width: number, heads: number): number {
  if (width % heads === 0) return width / heads;
  throw new ArgumentError(
    "MultiHeadAttention",
    "headsDoNotDivide",
    `${heads} heads do not divide a width of ${width}; choose other numbers, or give headWidth`,
  );
}

function checkGroups(heads: number, keyValueHeads: number): void {
  if (heads % keyValueHeads === 0) return;
  throw new ArgumentError(
    "MultiHeadAttention",
    "headsDoNotDivide",
    `heads is a multiple of keyValueHeads, ${heads} and ${keyValueHeads} came`,
  );
}
