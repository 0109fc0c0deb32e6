import { axis, someNumber } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { type DiagonalOptions, diagonal as diagonalOf } from "../../ops/view/diagonal.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/**
 * Returns a view of a diagonal of matrices, by default along the last two axes. The diagonal becomes the last axis of
 * the result. It is the same as `diagonal` except for the default axes, which are 0 and 1 there.
 *
 * @param a […, m, n]
 *
 * @example
 * linalg.diagonal(tensor([[[1, 2], [3, 4]]])); // float32 [[1, 4]]
 *
 * @throws {ShapeError} for an axis out of range, or the same axis twice.
 */
export function diagonal<D extends DType>(a: Tensor<D>, options?: DiagonalOptions): Tensor<D>;
export function diagonal(...values: unknown[]): Tensor {
  const { a, ...options } = diagonalParameters(values);
  return diagonalOf(a, options);
}
const diagonalParameters = parameters("linalg.diagonal", {
  a: operand(aTensor),
  offset: named(someNumber, 0),
  dim1: named(axis, -2),
  dim2: named(axis, -1),
});
