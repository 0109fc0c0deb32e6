import { record } from "../../autograd/record.ts";
import { execute } from "../../backend/dispatch.ts";
import { ShapeError } from "../../core/errors.ts";
import type { DType } from "../../tensor/dtype.ts";
import { broadcastShapes, normalizeAxis } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { filled } from "../view/embed.ts";
import { expand } from "../view/expand.ts";
import { flatten } from "../view/flatten.ts";
import { leadingPart } from "../view/leading.ts";
import { reshape } from "../view/reshape.ts";
import { gatherPrimitive } from "./gather_primitive.ts";
import { checkIndexDType, checkSomethingToName, type IndexDType } from "./indices.ts";
import { indexAdd, scatterAdd } from "./scatter_add.ts";

/** The axis of {@link gather}, {@link indexSelect}, `scatterAdd` and `indexAdd`. */
export interface IndexOptions {
  /** The axis that is indexed; negative ones count from the end. */
  dim: number;
}

/**
 * `result[…, i, …] = x[…, index[…, i, …], …]`: for each element of `index`, the element of `x` at the same place but for axis `dim`, where
 * the index says which. `index` has `x`'s rank and, beside `dim`, at most its sizes.
 *
 * @example
 * gather(tensor([[1, 2], [3, 4]]), tensor([[0n], [1n]]), { dim: 1 }); // [[1], [4]]
 *
 * @throws {ShapeError} where ranks or sizes do not fit, and `indexOutOfRange` for an index that is negative or too large (on Metal
 * when a result is read). @throws {DTypeError} for an index that is neither int64 nor int32.
 */
export function gather<D extends DType>(x: Tensor<D>, index: Tensor<IndexDType>, { dim }: IndexOptions): Tensor<D> {
  checkIndexDType("gather", index);
  x.checkAlive("gather");
  const axis = normalizeAxis("gather", dim, x.rank);
  checkIndexShape("gather", x, index, axis);
  return gathered("gather", x, index, axis);
}
gather.method = "same" as const;

/** @throws {ShapeError} where an index' rank differs, or a size beside the axis is larger. */
export function checkIndexShape(operation: string, x: Tensor, index: Tensor, axis: number): void {
  const fits = index.rank === x.rank && index.shape.every((size, own) => own === axis || size <= x.shape[own]!);
  if (!fits)
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `index ${index.describe()} came for ${x.describe()}; the same rank is wanted and, beside axis ${axis}, at most the same sizes`,
    );
}

/**
 * Slices of an axis: `result[…, i, …] = x[…, index[i], …]`.
 *
 * @param index a vector, or one index without axes
 *
 * @example
 * indexSelect(tensor([[1, 2], [3, 4]]), tensor([1n, 1n, 0n]), { dim: 0 }); // [[3, 4], [3, 4], [1, 2]]
 *
 * @throws {ShapeError} for an index of a higher rank, and `indexOutOfRange` for one that is negative or too large (on Metal when a
 * result is read). @throws {DTypeError} for an index that is neither int64 nor int32.
 */
export function indexSelect<D extends DType>(
  x: Tensor<D>,
  index: Tensor<IndexDType>,
  { dim }: IndexOptions,
): Tensor<D> {
  x.checkAlive("indexSelect");
  const axis = normalizeAxis("indexSelect", dim, x.rank);
  const vector = checkVector("indexSelect", index);
  if (x.rank === 0) return reshape(indexSelect(reshape(x, [1]), vector, { dim: 0 }), []);
  checkSomethingToName("indexSelect", vector, x.shape[axis]!);
  const attributes = { operation: "indexSelect", dim: axis, axes: [axis] };
  const shape = x.shape.with(axis, vector.size);
  using along = alongAxis(vector, x, axis);
  const output = execute(gatherPrimitive, [x, along], shape, x.dtype, attributes, "indexSelect");
  const own = x.shape;
  record("indexSelect", [x], [output], [vector], ([gradient], [saved]) => [
    indexAdd(filled(own, gradient!.dtype, 0), saved as Tensor<IndexDType>, gradient!, { dim: axis }),
  ]);
  return output;
}
indexSelect.method = "same" as const;

/** An index with one axis. @throws {ShapeError} where it has more. */
export function checkVector(operation: string, index: Tensor<IndexDType>): Tensor<IndexDType> {
  checkIndexDType(operation, index);
  if (index.rank > 1)
    throw new ShapeError(operation, "wrongRank", `a vector of indices is wanted, ${index.describe()} came`);
  return reshape(index, [index.size]);
}

/** A vector of indices as one for each element along an axis, repeated along the others: a view that the caller disposes of. */
export function alongAxis(vector: Tensor<IndexDType>, x: Tensor, axis: number): Tensor<IndexDType> {
  const strides = x.shape.map((_, own) => (own === axis ? vector.strides[0]! : 0));
  return new Tensor(vector.storage, vector.dtype, x.shape.with(axis, vector.size), strides, vector.offset);
}

/** Options of {@link takeAlongDim}. */
export interface TakeAlongDimOptions {
  /** The axis; where it is left out, both tensors are taken as one row. */
  dim?: number;
}

/**
 * As {@link gather}, with `x` and `index` broadcast to each other beside the axis. It fits what `argsort` and `argmax` return.
 *
 * @example
 * takeAlongDim(x, argsort(x, { dim: 1 }), { dim: 1 }); // sort(x, { dim: 1 }).values
 *
 * @throws {ShapeError} where ranks differ or shapes can't be broadcast, and `indexOutOfRange`. @throws {DTypeError} for an index that is
 * neither int64 nor int32.
 */
export function takeAlongDim<D extends DType>(
  x: Tensor<D>,
  index: Tensor<IndexDType>,
  { dim }: TakeAlongDimOptions = {},
): Tensor<D> {
  x.checkAlive("takeAlongDim");
  checkIndexDType("takeAlongDim", index);
  if (dim === undefined) return gathered("takeAlongDim", flatten(x), flatten(index), 0);
  const axis = normalizeAxis("takeAlongDim", dim, x.rank);
  if (index.rank !== x.rank)
    throw new ShapeError(
      "takeAlongDim",
      "wrongRank",
      `index ${index.describe()} came for ${x.describe()}; the same rank is wanted`,
    );
  if (x.rank === 0) return gathered("takeAlongDim", x, index, 0);
  const beside = (shape: readonly number[]) => shape.with(axis, 1);
  const common = broadcastShapes("takeAlongDim", beside(x.shape), beside(index.shape));
  return gathered(
    "takeAlongDim",
    expand(x, common.with(axis, x.shape[axis]!)),
    expand(index, common.with(axis, index.shape[axis]!)),
    axis,
  );
}
takeAlongDim.method = "same" as const;

/** The operation itself; what of `x` lies beyond the index beside the axis is left out. */
function gathered<D extends DType>(
  operation: string,
  x: Tensor<D>,
  index: Tensor<IndexDType>,
  axis: number,
): Tensor<D> {
  if (x.rank === 0) return reshape(gathered(operation, reshape(x, [1]), reshape(index, [1]), 0), []);
  checkSomethingToName(operation, index, x.shape[axis]!);
  using reached = leadingPart(x, index.shape.with(axis, x.shape[axis]!));
  const output = execute(gatherPrimitive, [reached, index], index.shape, x.dtype, { operation, dim: axis }, operation);
  const { shape } = x;
  record(operation, [x], [output], [index], ([gradient], [saved]) => [
    scatterAdd(filled(shape, gradient!.dtype, 0), saved as Tensor<IndexDType>, gradient!, { dim: axis }),
  ]);
  return output;
}
