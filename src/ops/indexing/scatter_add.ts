import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { axis as axisKind, someNumber } from "../../core/kinds.ts";
import { named, operand, parameters, required } from "../../core/parameters.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { normalizeAxis } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { indexAddAlong, scatterAddAlong } from "./adjoint.ts";
import type { IndexOptions } from "./gather.ts";
import { withAxisFirst } from "./gather.ts";
import { anIndex, checkIndexShape, checkVector, type IndexDType } from "./indices.ts";

/**
 * Adds elements along an axis to a copy of `x`: `result[…, index[…, i, …], …] += source[…, i, …]`. This is the gradient
 * of `gather`. Each element's sum follows the order of the indices, in float64 on the cpu and with compensated
 * summation on Metal, so every run gives the same bits. Integers wrap around; a sum of bools is true if any is true.
 *
 * @param index integers of `x`'s rank, with at most `source`'s sizes and, on axes other than `dim`, at most `x`'s
 * @param source of `x`'s dtype; elements outside the index's sizes are ignored
 *
 * @example
 * scatterAdd(tensor([0, 0]), tensor([1n, 1n]), tensor([2, 3]), { dim: 0 }); // [0, 5]
 *
 * @throws {ShapeError} if ranks or sizes do not match, and `indexOutOfRange` if an index is negative or too large (on
 * Metal when a result is read).
 * @throws {DTypeError} for an index of floats or bools, or a source of a different dtype.
 */
export function scatterAdd<D extends DType>(x: Tensor<D>, ...indices: ScatterArguments<D>): Tensor<D>;
export function scatterAdd(...values: unknown[]): Tensor {
  const { x, dim, index, source } = scatterAddParameters(withAxisFirst(values));
  checkSourceDType("scatterAdd", x, source);
  const axis = normalizeAxis("scatterAdd", dim, x.rank);
  checkIndexShape("scatterAdd", x, index, axis);
  checkSourceShape("scatterAdd", index, source);
  return scatterAddAlong("scatterAdd", x, index, source, axis);
}
scatterAdd.method = "same" as const;

/** Argument orders: `dim` first, as in PyTorch, or `dim` in the options. */
export type ScatterArguments<D extends DType, O extends IndexOptions = IndexOptions> =
  | [dim: number, index: Tensor<IndexDType>, source: Tensor<D>, options?: Omit<O, "dim">]
  | [index: Tensor<IndexDType>, source: Tensor<D>, options: O];

const scattering = {
  x: operand(aTensor),
  dim: required(axisKind),
  index: required(anIndex),
  source: required(aTensor),
} as const;
const scatterAddParameters = parameters("scatterAdd", scattering);

/** Options of {@link indexAdd}. */
export interface IndexAddOptions extends IndexOptions {
  /** Factor by which the source is multiplied. Default 1. */
  alpha?: number | undefined;
}

/**
 * Adds slices along an axis to a copy of `x`: `result[…, index[i], …] += alpha · source[…, i, …]`. This is the gradient
 * of `indexSelect`. Sums are computed as in {@link scatterAdd}.
 *
 * @param index a vector with one index for each slice of `source`
 * @param source of `x`'s dtype and, on axes other than `dim`, its sizes
 *
 * @example
 * indexAdd(zeros([3]), tensor([2n, 2n]), tensor([1, 2]), { dim: 0 }); // [0, 0, 3]
 *
 * @throws {ShapeError} if sizes do not match, and `indexOutOfRange` if an index is negative or too large (on Metal when
 * a result is read).
 * @throws {DTypeError} for an index of floats or bools, or a source of a different dtype.
 * @throws {ArgumentError} for a fractional alpha if the dtype is not a float.
 */
export function indexAdd<D extends DType>(x: Tensor<D>, ...indices: ScatterArguments<D, IndexAddOptions>): Tensor<D>;
export function indexAdd(...values: unknown[]): Tensor {
  const { x, dim, index, source, alpha } = indexAddParameters(withAxisFirst(values));
  checkSourceDType("indexAdd", x, source);
  const axis = normalizeAxis("indexAdd", dim, x.rank);
  const vector = checkVector("indexAdd", index);
  checkSlices("indexAdd", x, vector, source, axis);
  if (!isFloat(x.dtype) && !Number.isInteger(alpha))
    throw new ArgumentError(
      "indexAdd",
      "invalidAlpha",
      `expected alpha to be a whole number for ${x.dtype}, got ${alpha}`,
    );
  return indexAddAlong(x, vector, source, axis, alpha);
}
indexAdd.method = "same" as const;
const indexAddParameters = parameters("indexAdd", { ...scattering, alpha: named(someNumber, 1) });

/** @internal */
export function checkSourceDType(operation: string, x: Tensor, source: Tensor): void {
  for (const tensor of [x, source]) tensor.checkAlive(operation);
  if (x.dtype !== source.dtype)
    throw new DTypeError(
      operation,
      "dtypesDiffer",
      `expected source to have the dtype of x, ${x.dtype}, got ${source.dtype}; convert with toDType()`,
    );
}

/** @internal */
export function checkSourceShape(operation: string, index: Tensor, source: Tensor): void {
  const fits = index.rank === source.rank && index.shape.every((size, axis) => size <= source.shape[axis]);
  if (!fits)
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected index to have the rank and at most the sizes of source ${source.describe()}, got ${index.describe()}`,
    );
}

/** @internal */
export function checkSlices(operation: string, x: Tensor, vector: Tensor, source: Tensor, axis: number): void {
  const length = source.rank === 0 ? 1 : source.shape[axis];
  const fits =
    length === vector.size &&
    source.rank === x.rank &&
    source.shape.every((size, at) => at === axis || size === x.shape[at]);
  if (!fits)
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected source to have ${vector.size} slices along axis ${axis}, one for each index, and otherwise the sizes ` +
        `of ${x.describe()}, got ${source.describe()}`,
    );
}
