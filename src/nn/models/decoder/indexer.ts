/** Sparse attention of a {@link Decoder}: each query attends only to the tokens that an indexer chooses. */
import { noGrad } from "../../../autograd/modes.ts";
import { relu } from "../../../ops/activation/relu.ts";
import { toDType } from "../../../ops/copy/cast.ts";
import { ones, zeros } from "../../../ops/creation/full.ts";
import { mul } from "../../../ops/elementwise/arithmetic.ts";
import { ne } from "../../../ops/elementwise/comparison.ts";
import { logicalAnd } from "../../../ops/elementwise/logic.ts";
import { where } from "../../../ops/elementwise/where.ts";
import { scatter } from "../../../ops/indexing/scatter.ts";
import { tril } from "../../../ops/indexing/triangle.ts";
import { cat } from "../../../ops/join/cat.ts";
import { pad } from "../../../ops/join/pad.ts";
import { matmul } from "../../../ops/matmul/matmul.ts";
import { sum } from "../../../ops/reduction/sum.ts";
import { topk } from "../../../ops/sorting/sort.ts";
import { unflatten } from "../../../ops/view/flatten.ts";
import { transpose } from "../../../ops/view/permute.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import { narrow } from "../../../ops/view/slice.ts";
import { unsqueeze } from "../../../ops/view/squeeze.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { keep } from "../../../tensor/tidy.ts";
import type { KeysAndValues } from "../../cache/store.ts";
import { type LayerOptions, layerOptions } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import { LayerNorm } from "../../layers/normalization.ts";
import type { QuantizedLinear } from "../../quantized/linear.ts";
import type { LoraLinear } from "../../quantized/lora_linear.ts";
import type { IndexDescription } from "./description.ts";

/** The number of queries whose scores of all keys are in memory at once. */
const BLOCK = 128;

/** The eps of the norm of keys, which no config changes. */
const EPS = 1e-6;

/** Rotates heads [batch, heads, tokens, width]. */
type Rotate = (heads: Tensor) => Tensor;

/** Queries of the indexer [batch, heads, tokens, width], and weights of its heads [batch, heads, tokens, 1]. */
interface IndexQueries {
  readonly queries: Tensor;
  readonly weights: Tensor;
}

/**
 * Scores tokens for queries: score[s, t] = Σₕ weights(x[s])ₕ · relu(query(latent[s])ₕ · keyNorm(key(x[t]))). Positive
 * factors of all scores are left out, since only their order matters. It records no autograd history.
 *
 * | parameter | shape |
 * |---|---|
 * | `query.weight` | [heads · width, queryRank] |
 * | `key.weight`, `keyNorm.weight`, `keyNorm.bias` | [width, model's width], [width], [width] |
 * | `weights.weight` | [heads, model's width] |
 *
 * Source: DeepSeek-AI, "DeepSeek-V3.2", 2025, section 2.1; Hugging Face's `DeepseekV32Indexer`.
 */
export class Indexer extends Module<[x: Tensor, rotate: Rotate], Tensor> {
  readonly query: Linear | QuantizedLinear | LoraLinear;
  readonly key: Linear | QuantizedLinear | LoraLinear;
  readonly keyNorm: LayerNorm;
  readonly weights: Linear | QuantizedLinear | LoraLinear;
  readonly #description: IndexDescription;

  constructor(width: number, queryRank: number, description: IndexDescription, options: LayerOptions) {
    super();
    const layer = { ...layerOptions(options), bias: false };
    const { heads, headWidth } = description;
    this.#description = description;
    this.query = new Linear(queryRank, heads * headWidth, layer);
    this.key = new Linear(width, headWidth, layer);
    this.keyNorm = new LayerNorm(headWidth, { ...layerOptions(options), eps: EPS });
    this.weights = new Linear(width, heads, layer);
  }

  /** @param x [batch, tokens, width] @returns the keys [batch, 1, tokens, headWidth] */
  override forward(x: Tensor, rotate: Rotate): Tensor {
    return noGrad(() => rotate(unsqueeze(this.keyNorm.forward(this.key.forward(x)), 1)));
  }

  /** @param x [batch, tokens, width] @param latent the latent vectors of queries [batch, tokens, queryRank] */
  queriesOf(x: Tensor, latent: Tensor, rotate: Rotate): IndexQueries {
    const { heads, headWidth } = this.#description;
    return noGrad(() => ({
      queries: toDType(
        rotate(transpose(unflatten(this.query.forward(latent), 2, [heads, headWidth]), 1, 2)),
        "float32",
      ),
      weights: unsqueeze(transpose(toDType(this.weights.forward(x), "float32"), 1, 2), -1),
    }));
  }
}

/** Which tokens a layer's queries chose, in the order of computation. Later layers may share the choice. */
export class Selections implements Disposable {
  private readonly held: Tensor<"bool">[] = [];
  private next = 0;

  /** Starts a layer, which chooses again or reads the choice of the layer before. */
  start(isChosen: boolean): void {
    if (isChosen) this[Symbol.dispose]();
    this.next = 0;
  }

  /** Stores what `choose` returns; without it, returns what the layer before stored. */
  take(choose: (() => Tensor<"bool">) | undefined): Tensor<"bool"> {
    if (!choose) return this.held[this.next++];
    const chosen = keep(choose());
    this.held.push(chosen);
    return chosen;
  }

  [Symbol.dispose](): void {
    for (const mask of this.held.splice(0)) mask.dispose();
  }
}

/** Options of {@link SparseAttention}. */
interface SparseAttentionOptions {
  readonly description: IndexDescription;
  /** The number of heads of keys before those of the indexer. */
  readonly heads: number;
  readonly selections: Selections;
  /** Computes the queries of the indexer. Undefined: the choice of an earlier layer is used. */
  readonly own: (() => IndexQueries) | undefined;
  /** Whether a token attends only to itself and the tokens before it, besides the mask. */
  readonly causal: boolean;
  /** Computes attention. */
  readonly flash: (queries: Tensor, held: KeysAndValues, mask: Tensor<"bool"> | undefined) => Tensor;
}

/** Attention of one layer to the chosen tokens, for one batch or row after row. */
export class SparseAttention {
  private row = 0;
  private queries: IndexQueries | undefined;

  constructor(private readonly options: SparseAttentionOptions) {
    options.selections.start(options.own !== undefined);
  }

  /** @param held keys and values of all tokens, of which the last are the queries' @returns the shape of queries */
  attend(queries: Tensor, held: KeysAndValues, mask: Tensor<"bool"> | undefined): Tensor {
    const { heads, description, selections, own, flash } = this.options;
    const row = this.row++;
    const [count, total] = [queries.shape[2], held.keys.shape[2]];
    const part = (x: Tensor, end: number) => narrow(narrow(x, 1, 0, heads), 2, 0, end);
    if (total <= description.count)
      return flash(queries, { keys: part(held.keys, total), values: part(held.values, total) }, mask);
    const found: Tensor[] = [];
    for (let first = 0; first < count; first += BLOCK) {
      const size = Math.min(BLOCK, count - first);
      const end = total - count + first + size;
      const block = mask && narrow(mask.shape[2] === 1 ? mask : narrow(mask, 2, first, size), 3, 0, end);
      this.queries ??= own?.();
      const choose = own && (() => noGrad(() => this.choose({ row, first, size, end }, held.keys, block)));
      const chosen = selections.take(choose);
      found.push(
        flash(
          narrow(queries, 2, first, size),
          { keys: part(held.keys, end), values: part(held.values, end) },
          block ? (logicalAnd(block, chosen) as Tensor<"bool">) : chosen,
        ),
      );
    }
    return found.length === 1 ? found[0] : cat(found, { dim: 2 });
  }

  /** Returns which of the first `end` keys the queries of a block chose: bool [batch, 1, size, end]. */
  private choose(
    { row, first, size, end }: { row: number; first: number; size: number; end: number },
    keys: Tensor,
    mask: Tensor<"bool"> | undefined,
  ): Tensor<"bool"> {
    const { description, heads, causal } = this.options;
    const own = this.queries!;
    const isRow = own.queries.shape[0] > keys.shape[0];
    const block = (x: Tensor) => narrow(isRow ? narrow(x, 0, row, 1) : x, 2, first, size);
    const indexKeys = unpacked(narrow(keys, 2, 0, end), heads, description.headWidth);
    const products = relu(matmul(block(own.queries), transpose(toDType(indexKeys, "float32"), 2, 3)));
    const scores = sum(mul(products, block(own.weights)), { dim: 1, keepdim: true });
    const isEarlier = causal ? tril(ones([size, end], { dtype: "bool" }), end - size) : undefined;
    const isBefore = isEarlier && mask ? logicalAnd(isEarlier, mask) : (isEarlier ?? mask);
    const ranked = isBefore ? where(isBefore as Tensor<"bool">, scores, -Infinity) : scores;
    const { indices } = topk(ranked, Math.min(description.count, end), { dim: -1 });
    return ne(scatter(zeros([...ranked.shape]), 3, indices, 1), 0) as Tensor<"bool">;
  }
}

/** The number of heads of `width` elements that hold an indexer's keys in a cache. */
export const indexHeads = (headWidth: number, width: number): number => Math.ceil(headWidth / width);

/** Adds the indexer's keys [batch, 1, tokens, headWidth] to keys as further heads, and zeros to values. */
export function withIndexKeys({ keys, values }: KeysAndValues, indexKeys: Tensor): KeysAndValues {
  const [batch, , tokens, width] = keys.shape;
  const [headWidth, valueWidth] = [indexKeys.shape[3], values.shape[3]];
  const heads = indexHeads(headWidth, width);
  const padded = pad(indexKeys, [0, heads * width - headWidth]);
  const split = transpose(reshape(padded, [batch, tokens, heads, width]), 1, 2);
  return {
    keys: cat([keys, split], { dim: 1 }),
    values: cat([values, zeros([batch, heads, tokens, valueWidth], { dtype: values.dtype })], { dim: 1 }),
  };
}

/** Returns the indexer's keys that {@link withIndexKeys} added after `heads` heads: [batch, 1, tokens, headWidth]. */
function unpacked(keys: Tensor, heads: number, headWidth: number): Tensor {
  const [batch, all, tokens, width] = keys.shape;
  const packed = transpose(narrow(keys, 1, heads, all - heads), 1, 2);
  return narrow(reshape(packed, [batch, 1, tokens, (all - heads) * width]), 3, 0, headWidth);
}
