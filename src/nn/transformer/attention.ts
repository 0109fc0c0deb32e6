/** PyTorch's attention layer: self-attention and cross-attention with masks, under PyTorch's names. */
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { flag } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { dropout } from "../../ops/activation/dropout.ts";
import { scaledDotProductAttention } from "../../ops/attention/scaled_dot_product_attention.ts";
import { ones, zeros } from "../../ops/creation/full.ts";
import { add, mul } from "../../ops/elementwise/arithmetic.ts";
import { triu } from "../../ops/indexing/triangle.ts";
import { cat } from "../../ops/join/cat.ts";
import { linear } from "../../ops/matmul/linear.ts";
import { matmul } from "../../ops/matmul/matmul.ts";
import { mean } from "../../ops/reduction/mean.ts";
import { softmax } from "../../ops/softmax/softmax.ts";
import { expand } from "../../ops/view/expand.ts";
import { unflatten } from "../../ops/view/flatten.ts";
import { transpose } from "../../ops/view/permute.ts";
import { reshape } from "../../ops/view/reshape.ts";
import { select } from "../../ops/view/slice.ts";
import { split } from "../../ops/view/split.ts";
import { unsqueeze } from "../../ops/view/squeeze.ts";
import type { FloatDType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import {
  type LayerOptions,
  parameter,
  pytorchInitialization,
  xavierNormal,
  xavierUniform,
  zero,
} from "../layers/initialization.ts";
import { layerParameters, probability, size } from "../layers/kinds.ts";
import { Linear } from "../layers/linear.ts";
import { Module } from "../layers/module.ts";
import type { QuantizedLinear } from "../quantized/linear.ts";
import { addedMask, type MaskSizes, mergedMask, paddingMask, scoresMask, withKeys } from "./masks.ts";

/** Options of {@link MultiheadAttention}, in PyTorch's order. */
export interface MultiheadAttentionOptions extends LayerOptions {
  /** The probability, in training, that an attention weight becomes 0. Default 0. */
  dropout?: number | undefined;
  /** Whether projections have biases. Default true. */
  bias?: boolean | undefined;
  /** Whether to append a learned key and value, `bias_k` and `bias_v`. Default false. */
  addBiasKv?: boolean | undefined;
  /** Whether to append a key and a value of zeros. Default false. */
  addZeroAttn?: boolean | undefined;
  /** The width of keys. Default `embedDim`. */
  kdim?: number | undefined;
  /** The width of values. Default `embedDim`. */
  vdim?: number | undefined;
  /** Whether operands are [batch, tokens, width] instead of [tokens, batch, width]. Default false. */
  batchFirst?: boolean | undefined;
}

/** Optional inputs of {@link MultiheadAttention}. */
export interface MultiheadAttentionInputs {
  /** [batch, keys]: bool, true = no query attends to the key; or floats that are added to the key's scores. */
  keyPaddingMask?: Tensor | undefined;
  /** Whether to return the attention weights, which is slower. Default false, unlike in PyTorch. */
  needWeights?: boolean | undefined;
  /** [queries, keys] or [batch · heads, queries, keys]: bool, true = excluded; or floats that are added to scores. */
  attnMask?: Tensor | undefined;
  /** Whether returned weights are averaged over heads. Default true. */
  averageAttnWeights?: boolean | undefined;
  /** Whether each query attends only to keys up to its position, in addition to the masks. Default false. */
  isCausal?: boolean | undefined;
}

/** The result of {@link MultiheadAttention}. */
export interface MultiheadAttentionResult {
  /** The query's shape, with a width of `embedDim`. */
  readonly output: Tensor;
  /**
   * [batch, queries, keys], or [batch, heads, queries, keys] without `averageAttnWeights`; null without `needWeights`.
   */
  readonly weights: Tensor | null;
}

/**
 * Computes attention of queries to keys and values, as PyTorch's `MultiheadAttention`, whose state dicts load:
 *
 *     output = out_proj(join(softmax(q kᵀ / √headWidth + masks) v)),  q = query W_qᵀ + b_q; k and v likewise
 *
 * Masks are PyTorch's: **true leaves a key out**, unlike in `scaledDotProductAttention`. For a query that attends to no
 * key, attention is zero before `out_proj`, and the returned weights are NaN. {@link MultiHeadAttention} is the layer
 * of language models, with rotary positions, shared heads and caches.
 *
 * | parameter | shape |
 * |---|---|
 * | `in_proj_weight` | [3 · embedDim, embedDim]: rows of queries, of keys, of values; null with `kdim` or `vdim` |
 * | `q_proj_weight`, `k_proj_weight`, `v_proj_weight` | [embedDim, embedDim, kdim or vdim]; null without those |
 * | `in_proj_bias` | [3 · embedDim]; null without `bias` |
 * | `bias_k`, `bias_v` | [1, 1, embedDim]; null without `addBiasKv` |
 * | `out_proj.weight`, `out_proj.bias` | [embedDim, embedDim], [embedDim] |
 *
 * @example
 * const attention = new MultiheadAttention(64, 8, { batchFirst: true });
 * const { output } = attention.forward(randn([2, 5, 64]), randn([2, 9, 64]), randn([2, 9, 64])); // [2, 5, 64]
 *
 * @throws {ArgumentError} for sizes below 1, a width that is not a multiple of `numHeads`, and a dropout outside [0,
 * 1).
 */
export class MultiheadAttention extends Module<
  [query: Tensor, key: Tensor, value: Tensor, inputs?: MultiheadAttentionInputs],
  MultiheadAttentionResult
> {
  readonly embedDim: number;
  readonly numHeads: number;
  readonly headDim: number;
  readonly kdim: number;
  readonly vdim: number;
  readonly dropout: number;
  readonly batchFirst: boolean;
  readonly addZeroAttn: boolean;
  readonly in_proj_weight: Tensor | null = null;
  readonly q_proj_weight: Tensor | null = null;
  readonly k_proj_weight: Tensor | null = null;
  readonly v_proj_weight: Tensor | null = null;
  readonly in_proj_bias: Tensor | null;
  readonly bias_k: Tensor | null;
  readonly bias_v: Tensor | null;
  readonly out_proj: Linear | QuantizedLinear;

  constructor(
    embedDim: number,
    numHeads: number,
    ...options: Given<
      MultiheadAttentionOptions,
      ["dropout", "bias", "addBiasKv", "addZeroAttn", "kdim", "vdim", "batchFirst"]
    >
  );
  constructor(...values: unknown[]) {
    super();
    const { embedDim, numHeads, dropout, bias, addBiasKv, addZeroAttn, kdim, vdim, batchFirst, ...options } =
      constructorParameters(values);
    if (embedDim % numHeads !== 0)
      throw new ArgumentError(
        "MultiheadAttention",
        "headsDoNotDivide",
        `expected embedDim to be a multiple of numHeads, got ${embedDim} and ${numHeads}`,
      );
    this.embedDim = embedDim;
    this.numHeads = numHeads;
    this.headDim = embedDim / numHeads;
    this.kdim = kdim ?? embedDim;
    this.vdim = vdim ?? embedDim;
    this.dropout = dropout;
    this.batchFirst = batchFirst;
    this.addZeroAttn = addZeroAttn;
    const weight = (rows: number, columns: number) =>
      parameter([rows, columns], options.initialization?.weight ?? xavierUniform, options);
    if (this.kdim === embedDim && this.vdim === embedDim) this.in_proj_weight = weight(3 * embedDim, embedDim);
    else {
      this.q_proj_weight = weight(embedDim, embedDim);
      this.k_proj_weight = weight(embedDim, this.kdim);
      this.v_proj_weight = weight(embedDim, this.vdim);
    }
    const one = () => parameter([1, 1, embedDim], options.initialization?.weight ?? xavierNormal, options);
    this.in_proj_bias = bias
      ? parameter([3 * embedDim], options.initialization?.bias(embedDim) ?? zero, options)
      : null;
    this.bias_k = addBiasKv ? one() : null;
    this.bias_v = addBiasKv ? one() : null;
    const initialization = options.initialization ?? { ...pytorchInitialization, bias: () => zero };
    this.out_proj = new Linear(embedDim, embedDim, { ...options, initialization, bias, residual: true });
  }

  /**
   * @param query [tokens, batch, embedDim], with `batchFirst` [batch, tokens, embedDim], or one sequence [tokens,
   * embedDim]
   * @param key [keys, batch, kdim], likewise
   * @param value [keys, batch, vdim], likewise
   *
   * @throws {ShapeError} for unsuitable shapes of operands and masks. @throws {DTypeError} for masks that are neither
   * bool nor of the query's dtype.
   */
  override forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    inputs?: MultiheadAttentionInputs,
  ): MultiheadAttentionResult;
  override forward(...values: unknown[]): MultiheadAttentionResult {
    const call = forwardParameters(values);
    this.checkOperands(call);
    const isBatch = call.query.rank === 3;
    const steps = (x: Tensor): Tensor => (!isBatch ? unsqueeze(x, 0) : this.batchFirst ? x : transpose(x, 0, 1));
    return tidy(() => {
      const projected = this.project(call, steps);
      const { out, weights: probabilities } = this.attend(projected, call, isBatch);
      const joined = reshape(transpose(out, 1, 2), [out.shape[0], out.shape[2], this.embedDim]);
      const output = this.out_proj.forward(joined);
      const weights = probabilities && !isBatch ? select(probabilities, 0, 0) : probabilities;
      return { output: !isBatch ? select(output, 0, 0) : this.batchFirst ? output : transpose(output, 0, 1), weights };
    });
  }

  private checkOperands({ query, key, value }: Call): void {
    const name = "MultiheadAttention";
    const [batch, tokens] = this.batchFirst ? [0, 1] : [1, 0];
    const widths = [this.embedDim, this.kdim, this.vdim];
    const fits = [query, key, value].every((x, at) => x.rank === query.rank && x.shape.at(-1) === widths[at]);
    const isBatch = query.rank === 3;
    const isAlike =
      key.shape[isBatch ? tokens : 0] === value.shape[isBatch ? tokens : 0] &&
      (!isBatch || [key, value].every((x) => x.shape[batch] === query.shape[batch]));
    if (!fits || !isAlike || (query.rank !== 2 && query.rank !== 3)) {
      const lead = (count: string) => (this.batchFirst ? `[batch, ${count}, ` : `[${count}, batch, `);
      throw new ShapeError(
        name,
        "wrongShape",
        `expected query ${lead("queries")}${widths[0]}], key ${lead("keys")}${widths[1]}] and value ${lead("keys")}` +
          `${widths[2]}], or all without batch, got ${[query, key, value].map((x) => x.describe()).join(", ")}`,
      );
    }
    const { dtype } = this.in_proj_weight ?? this.q_proj_weight!;
    const other = [query, key, value].find((x) => x.dtype !== dtype);
    if (other === undefined) return;
    throw new DTypeError(
      name,
      "dtypesDiffer",
      `expected operands with the dtype of the weights, ${dtype}, got ${other.describe()}`,
    );
  }

  /** Returns queries, keys and values split into heads, [batch, heads, tokens, headDim]. */
  private project({ query, key, value }: Call, steps: (x: Tensor) => Tensor): Projected {
    const [q, k, v] = this.projections(query, key, value, steps);
    const more = (x: Tensor, bias: Tensor | null): Tensor => {
      const added = (row: Tensor) => cat([x, expand(row, [x.shape[0], 1, this.embedDim])], 1);
      const whole = bias ? added(bias) : x;
      if (!this.addZeroAttn) return whole;
      return cat([whole, zeros([x.shape[0], 1, this.embedDim], { dtype: x.dtype })], 1);
    };
    const heads = (x: Tensor) => transpose(unflatten(x, 2, [this.numHeads, this.headDim]), 1, 2);
    return { q: heads(q), k: heads(more(k, this.bias_k)), v: heads(more(v, this.bias_v)), keys: k.shape[1] };
  }

  /** Projects queries, keys and values; as one product if they are the same tensor. */
  private projections(query: Tensor, key: Tensor, value: Tensor, steps: (x: Tensor) => Tensor) {
    const { in_proj_weight: whole, in_proj_bias: bias, embedDim } = this;
    if (whole && query === key && key === value)
      return tupleOf(split(linear(steps(query), whole, bias), embedDim, { dim: -1 }), 3);
    const weights = whole ? split(whole, embedDim) : [this.q_proj_weight, this.k_proj_weight, this.v_proj_weight];
    const biases = bias ? split(bias, embedDim) : [];
    return tupleOf(
      [query, key, value].map((x, at) => linear(steps(x), weights[at]!, biases[at])),
      3,
    );
  }

  private attend({ q, k, v, keys }: Projected, call: Call, isBatch: boolean): { out: Tensor; weights: Tensor | null } {
    const { attnMask, keyPaddingMask, needWeights, averageAttnWeights, isCausal } = call;
    const [batch, heads, queries] = tupleOf(q.shape, 3);
    const dtype = q.dtype as FloatDType;
    const sizes: MaskSizes = { batch, heads, queries, keys, dtype };
    const maskList = [
      ...(attnMask ? [scoresMask("MultiheadAttention", attnMask, sizes)] : []),
      ...(keyPaddingMask ? [paddingMask("MultiheadAttention", keyPaddingMask, sizes, isBatch)] : []),
    ];
    const extra = k.shape[2] - keys;
    const isPlainCausal = isCausal && maskList.length === 0 && !needWeights && extra === 0;
    if (isCausal && !isPlainCausal) maskList.push(triu(ones([queries, keys], { dtype: "bool" }), 1));
    const masks = maskList.map((mask) => withKeys(mask, extra));
    const p = this.training ? this.dropout : 0;
    if (!needWeights) {
      const options = { attnMask: mergedMask(masks, dtype), dropoutP: p, isCausal: isPlainCausal };
      return { out: scaledDotProductAttention(q, k, v, options), weights: null };
    }
    const scores: Tensor = matmul(mul(q, 1 / Math.sqrt(this.headDim)), transpose(k, -1, -2));
    const chances = softmax(
      masks.reduce((sum, mask) => add(sum, addedMask(mask, dtype)), scores),
      -1,
    );
    const weights: Tensor = p > 0 ? dropout(chances, p) : chances;
    return { out: matmul(weights, v), weights: averageAttnWeights ? mean(weights, 1) : weights };
  }

  /** @internal */
  override details(): string {
    const { embedDim, numHeads, dropout, batchFirst } = this;
    const options = [batchFirst && "batchFirst", dropout && `dropout: ${dropout}`].filter(Boolean);
    return [`${embedDim}, heads: ${numHeads}`, ...options].join(", ");
  }
}

interface Projected {
  readonly q: Tensor;
  readonly k: Tensor;
  readonly v: Tensor;
  /** Number of keys, without appended ones. */
  readonly keys: number;
}

const constructorParameters = parameters("MultiheadAttention", {
  embedDim: operand(size),
  numHeads: operand(size),
  dropout: optional(probability, 0),
  bias: optional(flag, true),
  addBiasKv: optional(flag, false),
  addZeroAttn: optional(flag, false),
  kdim: optional(size),
  vdim: optional(size),
  batchFirst: optional(flag, false),
  ...layerParameters,
});

const forwardParameters = parameters("MultiheadAttention.forward", {
  query: operand(aTensor),
  key: operand(aTensor),
  value: operand(aTensor),
  keyPaddingMask: named(aTensor),
  needWeights: named(flag, false),
  attnMask: named(aTensor),
  averageAttnWeights: named(flag, true),
  isCausal: named(flag, false),
});
type Call = ReturnType<typeof forwardParameters>;
