import { ShapeError } from "../../core/errors.ts";
import type { DType } from "../../tensor/dtype.ts";
import { formatShape, normalizeAxis } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { viewOf } from "./view.ts";

/**
 * A view with the axes in another order: axis i of the result is axis `dims[i]` of `x`. Nothing is copied.
 *
 * @param dims every axis of `x` once; negative ones count from the end
 *
 * @example
 * permute(zeros([2, 3, 5]), [2, 0, 1]); // [5, 2, 3]
 *
 * @throws {ShapeError} where an axis is missing, out of range or named twice.
 */
export function permute<D extends DType>(x: Tensor<D>, dims: readonly number[]): Tensor<D> {
  if (dims.length !== x.rank)
    throw new ShapeError(
      "permute",
      "wrongRank",
      `expected dims to name each of the ${x.rank} axes of ${x.describe()} once, got ${formatShape(dims)}`,
    );
  return inOrder("permute", x, checkedOrder("permute", dims, x.rank));
}
permute.method = "same" as const;

/**
 * A view with two axes swapped. Nothing is copied.
 *
 * @example
 * transpose(zeros([2, 3, 5]), -1, -2); // [2, 5, 3]
 *
 * @throws {ShapeError} for an axis out of range.
 */
export function transpose<D extends DType>(x: Tensor<D>, dim0: number, dim1: number): Tensor<D> {
  const first = normalizeAxis("transpose", dim0, x.rank);
  const second = normalizeAxis("transpose", dim1, x.rank);
  const order = x.shape.map((_, axis) => (axis === first ? second : axis === second ? first : axis));
  return inOrder("transpose", x, order);
}
transpose.method = "same" as const;

/**
 * Another name of {@link transpose}.
 *
 * @example
 * swapaxes(tensor([[1, 2], [3, 4]]), 0, 1); // float32 [[1, 3], [2, 4]]
 */
export const swapaxes = transpose;

/**
 * A view with axes moved to other positions; those that are not named keep their order. Nothing is copied.
 *
 * @param source axes of `x`
 * @param destination where they end up, one for each
 *
 * @example
 * movedim(zeros([2, 3, 5]), 0, -1); // [3, 5, 2]
 *
 * @throws {ShapeError} for an axis out of range or named twice, or where the two lists differ in length.
 */
export function movedim<D extends DType>(
  x: Tensor<D>,
  source: number | readonly number[],
  destination: number | readonly number[],
): Tensor<D> {
  const from = checkedOrder("movedim", [source].flat(), x.rank);
  const to = checkedOrder("movedim", [destination].flat(), x.rank);
  if (from.length !== to.length)
    throw new ShapeError(
      "movedim",
      "lengthsDiffer",
      `expected one destination for each of ${from.length} axes, got ${to.length}`,
    );
  const remaining = x.shape.map((_, axis) => axis).filter((axis) => !from.includes(axis));
  const order = x.shape.map((_, axis) => (to.includes(axis) ? from[to.indexOf(axis)]! : remaining.shift()!));
  return inOrder("movedim", x, order);
}
movedim.method = "same" as const;

function checkedOrder(operation: string, dims: readonly number[], rank: number): number[] {
  const order = dims.map((dim) => normalizeAxis(operation, dim, rank));
  if (new Set(order).size !== order.length)
    throw new ShapeError(operation, "axisTwice", `dims ${formatShape(dims)} names an axis twice`);
  return order;
}

function inOrder<D extends DType>(operation: string, x: Tensor<D>, order: readonly number[]): Tensor<D> {
  const inverse = order.map((_, axis) => order.indexOf(axis));
  return viewOf(
    operation,
    x,
    order.map((axis) => x.shape[axis]!),
    order.map((axis) => x.strides[axis]!),
    x.offset,
    ([gradient]) => [inOrder(operation, gradient!, inverse)],
  );
}
