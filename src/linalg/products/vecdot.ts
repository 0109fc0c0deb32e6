import { axis } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { conjugate } from "../../ops/complex/part.ts";
import { checkSameDType } from "../../ops/matmul/checks.ts";
import { product } from "../../ops/matmul/product.ts";
import { asColumns, asNumbers, asRows } from "../../ops/matmul/views.ts";
import { expand } from "../../ops/view/expand.ts";
import { movedim } from "../../ops/view/permute.ts";
import { unsqueeze } from "../../ops/view/squeeze.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { broadcastShapes, normalizeAxis, sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** Options of {@link vecdot}. */
export interface VecdotOptions {
  /** The axis of the vectors, in the broadcast shape. Default the last one. */
  dim?: number;
}

/**
 * Computes dot products of vectors: Σₖ x[…, k] · y[…, k]. Shapes broadcast.
 *
 * @param x […, n]
 * @param y […, n], of the same dtype
 * @returns […]; for complex numbers Σ conj(x) · y
 *
 * @example
 * linalg.vecdot(tensor([[1, 2], [3, 4]]), tensor([1, 10])); // float32 [21, 43]
 *
 * @throws {ShapeError} if shapes do not broadcast, or for an axis out of range. @throws {DTypeError} if dtypes
 * differ, and for bool.
 */
export function vecdot<D extends DType>(x: Tensor<D>, y: Tensor<D>, options?: VecdotOptions): Tensor<D>;
export function vecdot(...values: unknown[]): Tensor {
  const { x, y, dim } = vecdotParameters(values);
  checkSameDType("vecdot", [x, y]);
  const shape = broadcastShapes("vecdot", x.shape, y.shape);
  const along = normalizeAxis("vecdot", dim, shape.length);
  const vectors = (operand: Tensor): Tensor => {
    const all = expand(operand, shape);
    return shape.length === 0 ? unsqueeze(all, 0) : movedim(all, along, -1);
  };
  const isPlain = shape.length > 0 && along === shape.length - 1 && sameShape(x.shape, y.shape);
  const [left, right] = isPlain ? [x, y] : [vectors(x), vectors(y)];
  return asNumbers(product(asRows(conjugate(left)), asColumns(right)));
}
const vecdotParameters = parameters("vecdot", {
  x: operand(aTensor),
  y: operand(aTensor),
  dim: named(axis, -1),
});
