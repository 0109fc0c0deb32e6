/**
 * Runs elementwise operations in the order of the operands' memory. The result of a transposed operand is transposed
 * too, as in PyTorch: both are then read and written in one dense pass, where a row-major result would need a gather.
 */

import type { Primitive } from "../../backend/backend.ts";
import { capturing } from "../../backend/capture.ts";
import { execute } from "../../backend/dispatch.ts";
import { liftingOf } from "../../backend/lifted.ts";
import type { DType } from "../../tensor/dtype.ts";
import { denseStrides, isRowMajor, type Shape, sameShape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";

/** Minimum number of elements. For smaller calls, creating the views costs more than the gather. */
const FEWEST = 512;

/**
 * Like `execute`, for an operation that computes each element separately from operands that are broadcast.
 *
 * @param operation the user's operation, for errors
 */
export function executeElementwise<D extends DType>(
  primitive: Primitive<undefined>,
  operands: readonly Tensor[],
  shape: Shape,
  dtype: D,
  operation?: string,
): Tensor<D> {
  const strides = areRowMajor(operands) ? undefined : commonStrides(operands, shape);
  if (strides === undefined) return execute(primitive, operands, shape, dtype, undefined, operation);
  const order = [...shape.keys()].sort((a, b) => strides[b] - strides[a]);
  const views = operands.map((x) => permuted(x, order));
  try {
    const sizes = order.map((axis) => shape[axis]);
    const result = execute(primitive, views, sizes, dtype, undefined, operation);
    const output = new Tensor(result.storage, dtype, shape, strides);
    result.dispose();
    return output;
  } finally {
    for (const view of views) view.dispose();
  }
}

/** Whether all operands are row-major. Most calls end here, so this check must be fast. */
function areRowMajor(operands: readonly Tensor[]): boolean {
  for (let at = 0; at < operands.length; at++) {
    const x = operands[at];
    if (x.strides.length > 1 && !x.isContiguous) return false;
  }
  return true;
}

/**
 * Returns the dense strides that all operands of the result's shape have in common; undefined if they are row-major.
 */
function commonStrides(operands: readonly Tensor[], shape: Shape): readonly number[] | undefined {
  // an exported graph must not depend on the number of elements
  if (liftingOf(operands, undefined) || capturing() !== undefined) return undefined;
  const full = operands.filter((x) => x.shape.length === shape.length && sameShape(x.shape, shape));
  const [first] = full;
  if (first === undefined || first.isContiguous || first.size < FEWEST) return undefined;
  const strides = denseStrides(shape, first.strides);
  if (isRowMajor(shape, strides)) return undefined;
  const isCommon = full.every((x) => x === first || sameShape(denseStrides(shape, x.strides), strides));
  return isCommon ? strides : undefined;
}

/** Returns a view whose axes, after broadcasting to the result's rank, are in this order. */
function permuted(x: Tensor, order: readonly number[]): Tensor {
  const missing = order.length - x.rank;
  const sizes = order.map((axis) => x.shape[axis - missing] ?? 1);
  const strides = order.map((axis) => x.strides[axis - missing] ?? 0);
  return new Tensor(x.storage, x.dtype, sizes, strides, x.offset);
}
