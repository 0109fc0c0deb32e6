import { named as underName } from "../../backend/dispatch.ts";
import { ShapeError } from "../../core/errors.ts";
import { type AxisArguments, axis as axisKind } from "../../core/kinds.ts";
import { operand, optional, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { broadcastShapes, normalizeAxis } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { expand } from "../view/expand.ts";
import { flatten } from "../view/flatten.ts";
import { reshape } from "../view/reshape.ts";
import { gatherAlong, indexSelectAlong } from "./adjoint.ts";
import { anIndex, checkIndexShape, checkVector, type IndexDType } from "./indices.ts";
import { fromTheFront } from "./places.ts";

/** The axis of {@link gather}, {@link indexSelect}, `scatterAdd` and `indexAdd`. */
export interface IndexOptions {
  /** The axis that is indexed; negative ones count from the end. */
  dim: number;
}

/** The ways to pass an axis and indices: as PyTorch has them, or the axis by name. */
export type IndexArguments =
  | [dim: number, index: Tensor<IndexDType>]
  | [index: Tensor<IndexDType>, options: IndexOptions];

const indexing = { x: operand(aTensor), dim: required(axisKind), index: required(anIndex) } as const;

/** @internal Values with the axis before the indices, where PyTorch has it; undefined where it is given by name. */
export const withAxisFirst = (values: readonly unknown[]): readonly unknown[] =>
  Tensor.isTensor(values[1]) ? values.toSpliced(1, 0, undefined) : values;

/**
 * `result[…, i, …] = x[…, index[…, i, …], …]`: for each element of `index`, the element of `x` with the same
 * coordinates, but for axis `dim`, along which the index says which one. `index` has `x`'s rank and, on other axes than
 * `dim`, at most its sizes.
 *
 * @example
 * gather(tensor([[1, 2], [3, 4]]), tensor([[0n], [1n]]), { dim: 1 }); // [[1], [4]]
 *
 * @throws {ShapeError} where ranks or sizes do not fit, and `indexOutOfRange` for an index that is negative or too
 * large (on Metal when a result is read). @throws {DTypeError} for an index of floats or bools.
 */
export function gather<D extends DType>(x: Tensor<D>, ...indices: IndexArguments): Tensor<D>;
export function gather(...values: unknown[]): Tensor {
  const { x, dim, index } = gatherParameters(withAxisFirst(values));
  const axis = normalizeAxis("gather", dim, x.rank);
  const own = x.rank === 0 && index.rank === 1 ? reshape(x, [1]) : x; // as PyTorch takes a tensor without axes
  checkIndexShape("gather", own, index, axis);
  return gatherAlong("gather", own, index, axis);
}
gather.method = "same" as const;
const gatherParameters = parameters("gather", indexing);

/**
 * Slices of an axis: `result[…, i, …] = x[…, index[i], …]`.
 *
 * @param index a vector, or one index without axes
 *
 * @example
 * indexSelect(tensor([[1, 2], [3, 4]]), tensor([1n, 1n, 0n]), { dim: 0 }); // [[3, 4], [3, 4], [1, 2]]
 *
 * @throws {ShapeError} for an index of a higher rank, and `indexOutOfRange` for one that is negative or too large (on
 * Metal when a result is read). @throws {DTypeError} for an index of floats or bools.
 */
export function indexSelect<D extends DType>(x: Tensor<D>, ...indices: IndexArguments): Tensor<D>;
export function indexSelect(...values: unknown[]): Tensor {
  const { x, dim, index } = indexSelectParameters(withAxisFirst(values));
  const axis = normalizeAxis("indexSelect", dim, x.rank);
  return indexSelectAlong(x, checkVector("indexSelect", index), axis);
}
indexSelect.method = "same" as const;
const indexSelectParameters = parameters("indexSelect", indexing);

/** Options of {@link takeAlongDim}. */
export interface TakeAlongDimOptions {
  /** The axis; where it is left out, both tensors are taken as one row. */
  dim?: number | undefined;
}

/**
 * As {@link gather}, with `x` and `index` broadcast to each other on the other axes, and negative indices counted from
 * the end. It fits what `argsort` and `argmax` return.
 *
 * @example
 * takeAlongDim(x, argsort(x, { dim: 1 }), { dim: 1 }); // sort(x, { dim: 1 }).values
 *
 * @throws {ShapeError} where ranks differ or shapes can't be broadcast, and `indexOutOfRange`. @throws {DTypeError} for
 * an index of floats or bools.
 */
export function takeAlongDim<D extends DType>(
  x: Tensor<D>,
  index: Tensor<IndexDType>,
  ...options: AxisArguments<TakeAlongDimOptions>
): Tensor<D>;
export function takeAlongDim(...values: unknown[]): Tensor {
  const { x, index, dim } = takeAlongDimParameters(values);
  if (dim === undefined) return takenAlong(flatten(x), flatten(index), 0);
  const axis = normalizeAxis("takeAlongDim", dim, x.rank);
  if (index.rank !== x.rank)
    throw new ShapeError(
      "takeAlongDim",
      "wrongRank",
      `expected index to have the rank of ${x.describe()}, got ${index.describe()}`,
    );
  if (x.rank === 0) return takenAlong(x, index, 0);
  const common = broadcastShapes("takeAlongDim", x.shape.with(axis, 1), index.shape.with(axis, 1));
  return takenAlong(
    expand(x, common.with(axis, x.shape[axis]!)),
    expand(index, common.with(axis, index.shape[axis]!)),
    axis,
  );
}
takeAlongDim.method = "same" as const;
const takeAlongDimParameters = parameters("takeAlongDim", {
  x: operand(aTensor),
  index: operand(anIndex),
  dim: optional(axisKind),
});

const takenAlong = (x: Tensor, index: Tensor<IndexDType>, axis: number): Tensor =>
  underName("takeAlongDim", () =>
    tidy(() => gatherAlong("takeAlongDim", x, fromTheFront("takeAlongDim", index, x.shape[axis] ?? 1), axis)),
  );
