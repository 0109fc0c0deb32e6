/** Elements selected by row-major position, and slices replaced by index. */
import { underName } from "../../backend/dispatch.ts";
import { firstBackend } from "../../backend/registry.ts";
import { DTypeError, ShapeError } from "../../core/errors.ts";
import { axis as axisKind } from "../../core/kinds.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor, scalarOrElement } from "../../tensor/kinds.ts";
import type { Scalar } from "../../tensor/promotion.ts";
import { sameShape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { truncatedScalar } from "../elementwise/operands.ts";
import { expand } from "../view/expand.ts";
import { reshape } from "../view/reshape.ts";
import { axisOf } from "../view/slice.ts";
import { alongAxis, gatherAlong } from "./adjoint.ts";
import { anIndex, checkVector, type IndexDType } from "./indices.ts";
import { fromTheFront, signed } from "./places.ts";
import { scatterAlong } from "./scatter.ts";

/**
 * Returns the elements at row-major positions: `result[i] = x.flatten()[index[i]]`. Negative indices count from the
 * end.
 *
 * @returns the shape of the index
 *
 * @example
 * take(tensor([[1, 2], [3, 4]]), tensor([-1n, 0n])); // [4, 1]
 *
 * @throws {ShapeError} `indexOutOfRange` (on Metal when a result is read).
 * @throws {DTypeError} for an index of floats or bools.
 */
export function take<D extends DType>(x: Tensor<D>, index: Tensor<IndexDType>): Tensor<D>;
export function take(...values: unknown[]): Tensor {
  const { x, index } = takeParameters(values);
  return underName("take", () =>
    tidy(() => {
      const [elements, places] = [lineOf(x), lineOf(index)];
      const taken =
        firstBackend() === "cpu"
          ? gatherAlong("take", elements, places, 0, { wraps: true })
          : gatherAlong("take", elements, fromTheFront("take", places, x.size), 0, signed);
      return index.rank === 1 ? taken : reshape(taken, index.shape);
    }),
  );
}
take.method = "same" as const;
const lineOf = <D extends DType>(x: Tensor<D>): Tensor<D> => (x.rank === 1 ? x : reshape(x, [x.size]));
const takeParameters = parameters("take", { x: operand(aTensor), index: operand(anIndex) });

/**
 * Replaces slices along an axis in a copy of `x`: `result[…, index[i], …] = source[…, i, …]`. If several indices name
 * one slice, the last one wins. The gradient of `x` is 0 at replaced slices.
 *
 * @param index a vector
 * @param source of x's shape, with one slice per index along `dim`
 *
 * @example
 * indexCopy(tensor([1, 2, 3]), 0, tensor([2n, 0n]), tensor([8, 9])); // float32 [9, 2, 8]
 *
 * @throws {ShapeError} if shapes do not match, and `indexOutOfRange` (on Metal when a result is read).
 * @throws {DTypeError} for an index of floats or bools, or a source of a different dtype.
 */
export function indexCopy<D extends DType>(
  x: Tensor<D>,
  dim: number,
  index: Tensor<IndexDType>,
  source: Tensor<D>,
): Tensor<D>;
export function indexCopy(...values: unknown[]): Tensor {
  const { x, dim, index, source } = indexCopyParameters(values);
  if (x.rank === 0)
    return ofElement(x, (vector) => indexCopy(vector, dim, index, source.rank === 0 ? reshape(source, [1]) : source));
  const axis = axisOf("indexCopy", x, dim);
  const places = checkVector("indexCopy", index);
  if (source.dtype !== x.dtype)
    throw new DTypeError(
      "indexCopy",
      "dtypesDiffer",
      `expected source to have the dtype of x, ${x.dtype}, got ${source.dtype}`,
    );
  if (!sameShape(source.shape, x.shape.with(axis, places.size)))
    throw new ShapeError(
      "indexCopy",
      "shapesDiffer",
      `expected source to have the shape of ${x.describe()} with ${places.size} slices along axis ${axis}, got ` +
        source.describe(),
    );
  return underName("indexCopy", () =>
    tidy(() => scatterAlong("indexCopy", x, alongAxis(places, source, axis), source, axis)),
  );
}
indexCopy.method = "same" as const;
const indexCopyParameters = parameters("indexCopy", {
  x: operand(aTensor),
  dim: required(axisKind),
  index: required(anIndex),
  source: required(aTensor),
});

/**
 * Fills slices along an axis of a copy of `x` with one value. The gradient of `x` is 0 there. A value that is a tensor
 * without axes gets a gradient too.
 *
 * @param index a vector
 * @returns a tensor of x's shape and dtype
 *
 * @example
 * indexFill(tensor([1, 2, 3]), 0, tensor([2n, 0n]), 9); // float32 [9, 2, 9]
 *
 * @throws {ShapeError} if the index has more than one axis, and `indexOutOfRange` (on Metal when a result is read).
 * @throws {DTypeError} for an index of floats or bools.
 */
export function indexFill<D extends DType>(
  x: Tensor<D>,
  dim: number,
  index: Tensor<IndexDType>,
  value: Scalar | Tensor,
): Tensor<D>;
export function indexFill(...values: unknown[]): Tensor {
  const { x, dim, index, value } = indexFillParameters(values);
  if (x.rank === 0) return ofElement(x, (vector) => indexFill(vector, dim, index, value));
  const axis = axisOf("indexFill", x, dim);
  const places = checkVector("indexFill", index);
  return underName("indexFill", () =>
    tidy(() => {
      const one = elementOf(value, x.dtype);
      const source = expand(one, x.shape.with(axis, places.size));
      return scatterAlong("indexFill", x, alongAxis(places, source, axis), source, axis);
    }),
  );
}
indexFill.method = "same" as const;
const indexFillParameters = parameters("indexFill", {
  x: operand(aTensor),
  dim: required(axisKind),
  index: required(anIndex),
  value: required(scalarOrElement),
});

/** Returns the value as a tensor without axes. */
function elementOf(value: Scalar | Tensor, dtype: DType): Tensor {
  return value instanceof Tensor ? toDType(value, dtype) : truncatedScalar(value, dtype, "indexFill");
}

/** Indexes a scalar tensor as a vector with one element. */
const ofElement = (x: Tensor, indexed: (vector: Tensor) => Tensor): Tensor =>
  tidy(() => reshape(indexed(reshape(x, [1])), []));
