import { underName } from "../../backend/dispatch.ts";
import { firstBackend } from "../../backend/registry.ts";
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
import { fromTheFront, signed } from "./places.ts";

/** Options of {@link gather}, {@link indexSelect}, `scatterAdd` and `indexAdd`. */
export interface IndexOptions {
  /** The axis to index. Negative values count from the end. */
  dim: number;
}

/** Argument orders: `dim` first, as in PyTorch, or `dim` in the options. */
export type IndexArguments =
  | [dim: number, index: Tensor<IndexDType>]
  | [index: Tensor<IndexDType>, options: IndexOptions];

const indexing = { x: operand(aTensor), dim: required(axisKind), index: required(anIndex) } as const;

/**
 * @internal Inserts an undefined axis before the indices if the axis is in the options, so that positions match
 * PyTorch's.
 */
export const withAxisFirst = (values: readonly unknown[]): readonly unknown[] =>
  Tensor.isTensor(values[1]) ? values.toSpliced(1, 0, undefined) : values;

/**
 * Gathers elements along an axis: `result[…, i, …] = x[…, index[…, i, …], …]`.
 *
 * @param index integers of `x`'s rank, with at most its sizes on the axes other than `dim`
 * @returns the shape of `index`, in `x`'s dtype
 *
 * @example
 * gather(tensor([[1, 2], [3, 4]]), tensor([[0n], [1n]]), { dim: 1 }); // [[1], [4]]
 *
 * @throws {ShapeError} if ranks or sizes do not match, and `indexOutOfRange` if an index is negative or too large (on
 * Metal when a result is read).
 * @throws {DTypeError} for an index of floats or bools.
 */
export function gather<D extends DType>(x: Tensor<D>, ...indices: IndexArguments): Tensor<D>;
export function gather(...values: unknown[]): Tensor {
  const { x, dim, index } = gatherParameters(withAxisFirst(values));
  const axis = normalizeAxis("gather", dim, x.rank);
  const input = x.rank === 0 && index.rank === 1 ? reshape(x, [1]) : x; // PyTorch allows a vector index of a scalar
  checkIndexShape("gather", input, index, axis);
  return gatherAlong("gather", input, index, axis);
}
gather.method = "same" as const;
const gatherParameters = parameters("gather", indexing);

/**
 * Selects slices along an axis: `result[…, i, …] = x[…, index[i], …]`.
 *
 * @param index a vector, or a tensor without axes
 *
 * @example
 * indexSelect(tensor([[1, 2], [3, 4]]), tensor([1n, 1n, 0n]), { dim: 0 }); // [[3, 4], [3, 4], [1, 2]]
 *
 * @throws {ShapeError} for an index of higher rank, and `indexOutOfRange` if an index is negative or too large (on
 * Metal when a result is read).
 * @throws {DTypeError} for an index of floats or bools.
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
  /** The axis to index. Default: `x` and `index` are flattened first. */
  dim?: number | undefined;
}

/**
 * Gathers elements along an axis as {@link gather} does, but broadcasts `x` and `index` on the other axes and counts
 * negative indices from the end. It accepts the results of `argsort` and `argmax`.
 *
 * @example
 * takeAlongDim(x, argsort(x, { dim: 1 }), { dim: 1 }); // sort(x, { dim: 1 }).values
 *
 * @throws {ShapeError} if ranks differ or shapes can't be broadcast, and `indexOutOfRange`.
 * @throws {DTypeError} for an index of floats or bools.
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
    expand(x, common.with(axis, x.shape[axis])),
    expand(index, common.with(axis, index.shape[axis])),
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
    tidy(() => {
      if (firstBackend() === "cpu") return gatherAlong("takeAlongDim", x, index, axis, { wraps: true });
      return gatherAlong("takeAlongDim", x, fromTheFront("takeAlongDim", index, x.shape[axis] ?? 1), axis, signed);
    }),
  );
