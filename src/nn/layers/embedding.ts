import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError } from "../../core/errors.ts";
import { choice, flag, someNumber } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters, reading } from "../../core/parameters.ts";
import { zero_ } from "../../ops/copy/inplace.ts";
import { embedding } from "../../ops/embedding/embedding.ts";
import { embeddingBag } from "../../ops/embedding/embedding_bag.ts";
import type { BagMode } from "../../ops/embedding/primitive.ts";
import { linear } from "../../ops/matmul/linear.ts";
import { narrow, select } from "../../ops/view/slice.ts";
import type { FloatDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type LayerOptions, parameter, pytorchInitialization } from "./initialization.ts";
import { layerParameters, size } from "./kinds.ts";
import { Module } from "./module.ts";

/** Options of {@link Embedding}. */
export interface EmbeddingOptions<D extends FloatDType = FloatDType> extends LayerOptions<D> {
  /**
   * The row for padding, PyTorch's `padding_idx`. It starts as zeros and gets no gradient. Negative counts from the
   * end. Default: none.
   */
  paddingIndex?: number | undefined;
}

const embeddingParameters = parameters("Embedding", {
  rows: operand(size),
  width: operand(size),
  paddingIndex: optional(someNumber),
  ...layerParameters,
});

/**
 * Looks up rows of a trained table by index. PyTorch calls the sizes `num_embeddings` and `embedding_dim`.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | [rows, width] |
 *
 * @example
 * new Embedding(50_257, 768).forward(tensor([[1, 2, 3]], { dtype: "int32" })); // [1, 3, 768]
 *
 * @throws {ArgumentError} for sizes below 1, and a padding index out of range.
 */
export class Embedding<out D extends FloatDType = FloatDType> extends Module<[indices: Tensor], Tensor<D>> {
  readonly rows: number;
  readonly width: number;
  readonly paddingIndex: number | undefined;
  readonly weight: Tensor<D>;

  constructor(rows: number, width: number, ...options: Given<EmbeddingOptions<D>, ["paddingIndex"]>);
  constructor(...values: unknown[]) {
    super();
    const { rows, width, paddingIndex, ...options } = embeddingParameters(values);
    this.rows = rows;
    this.width = width;
    this.paddingIndex = paddingIndex;
    this.weight = table("Embedding", rows, width, paddingIndex, options as LayerOptions<D>);
  }

  /** @param indices integers, [...] @returns [..., width] @throws {ArgumentError} for an index out of range. */
  override forward<R extends D = D>(indices: Tensor): Tensor<NoInfer<R>>;
  override forward(indices: Tensor): Tensor;
  override forward(indices: Tensor): Tensor {
    return embedding(indices, this.weight, { paddingIndex: this.paddingIndex });
  }

  /**
   * @internal Returns adjacent rows, [count, width]. For all rows, it returns the weight itself, because the gradient
   * of a view would be copied.
   */
  rowsFrom(first: number, count: number): Tensor<D> {
    return count === this.rows ? this.weight : narrow(this.weight, 0, first, count);
  }

  /** Multiplies by the table, as an output head with tied weights. @param x [..., width] @returns [..., rows] */
  asLinear(x: Tensor): Tensor<D> {
    return linear(x as Tensor<D>, this.weight);
  }

  /** @internal */
  override details(): string {
    return `${this.rows}, ${this.width}`;
  }
}

/** Options of {@link EmbeddingBag}. */
export interface EmbeddingBagOptions<D extends FloatDType = FloatDType> extends EmbeddingOptions<D> {
  /** How the rows of a bag are reduced. Default `"mean"`. */
  mode?: BagMode | undefined;
  /** Whether the last element of `offsets` is the number of indices instead of the start of a bag. Default false. */
  includeLastOffset?: boolean | undefined;
}

/** Optional inputs of {@link EmbeddingBag}. */
export interface EmbeddingBagInputs {
  /** Where each bag starts; required if `indices` has one axis. */
  readonly offsets?: Tensor | undefined;
  /** A factor for each index; requires `mode: "sum"`. */
  readonly perSampleWeights?: Tensor | undefined;
}

const embeddingBagParameters = parameters("EmbeddingBag", {
  rows: operand(size),
  width: operand(size),
  mode: named(choice("sum", "mean", "max"), "mean"),
  includeLastOffset: named(flag, false),
  paddingIndex: named(someNumber),
  ...layerParameters,
});

/**
 * Computes the sum, mean or maximum of the rows of each bag of indices. PyTorch calls the sizes `num_embeddings` and
 * `embedding_dim`.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | [rows, width] |
 *
 * @example
 * const bag = new EmbeddingBag(10, 4, { mode: "sum" });
 * bag.forward(tensor([1, 2, 4], { dtype: "int32" }), { offsets: tensor([0, 2], { dtype: "int32" }) }); // [2, 4]
 *
 * @throws {ArgumentError} for sizes below 1, and a padding index out of range.
 */
export class EmbeddingBag<out D extends FloatDType = FloatDType> extends Module<
  [indices: Tensor, inputs?: EmbeddingBagInputs],
  Tensor<D>
> {
  readonly rows: number;
  readonly width: number;
  readonly mode: BagMode;
  readonly includeLastOffset: boolean;
  readonly paddingIndex: number | undefined;
  readonly weight: Tensor<D>;

  constructor(rows: number, width: number, options?: EmbeddingBagOptions<D>);
  constructor(...values: unknown[]) {
    super();
    const { rows, width, mode, includeLastOffset, paddingIndex, ...options } = embeddingBagParameters(values);
    this.rows = rows;
    this.width = width;
    this.mode = mode;
    this.includeLastOffset = includeLastOffset;
    this.paddingIndex = paddingIndex;
    this.weight = table("EmbeddingBag", rows, width, paddingIndex, options as LayerOptions<D>);
  }

  /** @param indices [bags, size], or [count] with `offsets` @returns [bags, width] */
  override forward<R extends D = D>(indices: Tensor, inputs?: EmbeddingBagInputs): Tensor<NoInfer<R>>;
  override forward(indices: Tensor, inputs?: EmbeddingBagInputs): Tensor;
  override forward(indices: Tensor, inputs: EmbeddingBagInputs = {}): Tensor {
    const { mode, includeLastOffset, paddingIndex } = this;
    const options = reading("EmbeddingBag", () => ({ ...inputs, mode, includeLastOffset, paddingIndex }));
    return embeddingBag(indices, this.weight, options);
  }

  /** @internal */
  override details(): string {
    return `${this.rows}, ${this.width}, mode: "${this.mode}"`;
  }
}

function table<D extends FloatDType>(
  layer: string,
  rows: number,
  width: number,
  paddingIndex: number | undefined,
  options: LayerOptions<D>,
): Tensor<D> {
  if (paddingIndex !== undefined && !(Number.isInteger(paddingIndex) && paddingIndex >= -rows && paddingIndex < rows))
    throw new ArgumentError(
      layer,
      "invalidPaddingIndex",
      `expected paddingIndex to be a row from ${-rows} to ${rows - 1}, got ${String(paddingIndex)}`,
    );
  const weight = parameter([rows, width], (options.initialization ?? pytorchInitialization).embedding, options);
  if (paddingIndex !== undefined) noGrad(() => zero_(select(weight, 0, paddingIndex)));
  return weight;
}
