import { ShapeError } from "../../core/errors.ts";
import { axes, axesInline, axis as axisKind } from "../../core/kinds.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { plainList } from "../../tensor/frozen.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { formatShape, normalizeAxis } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { viewOf } from "./view.ts";

/**
 * Returns a view with permuted axes: axis i of the result is axis `dims[i]` of `x`. Nothing is copied.
 *
 * @param dims every axis of `x` once, in a list or one by one; negative values count from the end
 *
 * @example
 * permute(zeros([2, 3, 5]), 2, 0, 1); // [5, 2, 3]
 *
 * @throws {ShapeError} if an axis is missing, out of range or given twice.
 */
export function permute<D extends DType>(x: Tensor<D>, ...dims: [dims: readonly number[]] | number[]): Tensor<D>;
export function permute(...values: unknown[]): Tensor {
  const { x, dims: given } = permuteParameters(values);
  const dims = [given].flat();
  if (dims.length !== x.rank)
    throw new ShapeError(
      "permute",
      "wrongRank",
      `expected dims to name each of the ${x.rank} axes of ${x.describe()} once, got ${formatShape(dims)}`,
    );
  return inOrder("permute", x, checkedOrder("permute", dims, x.rank));
}
permute.method = "same" as const;
const permuteParameters = parameters("permute", { x: operand(aTensor), dims: required(axesInline) });

/**
 * Returns a view with two axes swapped. Nothing is copied.
 *
 * @example
 * transpose(zeros([2, 3, 5]), -1, -2); // [2, 5, 3]
 *
 * @throws {ShapeError} for an axis out of range.
 */
export function transpose<D extends DType>(x: Tensor<D>, dim0: number, dim1: number): Tensor<D>;
export function transpose(...values: unknown[]): Tensor {
  const { x, dim0, dim1 } = transposeParameters(values);
  const first = normalizeAxis("transpose", dim0, x.rank, "dim0");
  const second = normalizeAxis("transpose", dim1, x.rank, "dim1");
  return swapped(x, first, second);
}
transpose.method = "same" as const;
const transposeParameters = parameters("transpose", {
  x: operand(aTensor),
  dim0: required(axisKind),
  dim1: required(axisKind),
});

/**
 * Another name of {@link transpose}.
 *
 * @example
 * swapaxes(tensor([[1, 2], [3, 4]]), 0, 1); // float32 [[1, 3], [2, 4]]
 */
export const swapaxes = transpose;

/**
 * Returns a view with axes moved to other positions; the remaining axes keep their order. Nothing is copied.
 *
 * @param source axes of `x`
 * @param destination their new positions, one for each
 *
 * @example
 * movedim(zeros([2, 3, 5]), 0, -1); // [3, 5, 2]
 *
 * @throws {ShapeError} for an axis out of range or given twice, or if the two lists differ in length.
 */
export function movedim<D extends DType>(
  x: Tensor<D>,
  source: number | readonly number[],
  destination: number | readonly number[],
): Tensor<D>;
export function movedim(...values: unknown[]): Tensor {
  const { x, source, destination } = movedimParameters(values);
  const from = checkedOrder("movedim", [source].flat(), x.rank, "source");
  const to = checkedOrder("movedim", [destination].flat(), x.rank, "destination");
  if (from.length !== to.length)
    throw new ShapeError(
      "movedim",
      "lengthsDiffer",
      `expected one destination for each of ${from.length} axes, got ${to.length}`,
    );
  const remaining = x.shape.map((_, axis) => axis).filter((axis) => !from.includes(axis));
  const order = x.shape.map((_, axis) => (to.includes(axis) ? from[to.indexOf(axis)] : remaining.shift()!));
  return inOrder("movedim", x, order);
}
movedim.method = "same" as const;
const movedimParameters = parameters("movedim", {
  x: operand(aTensor),
  source: required(axes),
  destination: required(axes),
});

/** Swaps two axes; a second swap undoes it. */
function swapped(x: Tensor, first: number, second: number): Tensor {
  return viewOf(
    "transpose",
    x,
    swappedIn(plainList(x.shape), first, second),
    swappedIn(plainList(x.strides), first, second),
    x.offset,
    ([gradient]) => [swapped(gradient, first, second)],
  );
}

function swappedIn(list: readonly number[], first: number, second: number): number[] {
  const result = list.slice();
  if (first === second) return result; // also for a tensor without axes
  result[first] = list[second];
  result[second] = list[first];
  return result;
}

function checkedOrder(operation: string, dims: readonly number[], rank: number, name = "dims"): number[] {
  const order = dims.map((dim) => normalizeAxis(operation, dim, rank, name));
  if (new Set(order).size !== order.length)
    throw new ShapeError(operation, "axisTwice", `${name} ${formatShape(dims)} names an axis twice`);
  return order;
}

function inOrder<D extends DType>(operation: string, x: Tensor<D>, order: readonly number[]): Tensor<D> {
  const shape = plainList(x.shape);
  const strides = plainList(x.strides);
  return viewOf(
    operation,
    x,
    order.map((axis) => shape[axis]),
    order.map((axis) => strides[axis]),
    x.offset,
    ([gradient]) => [inOrder(operation, gradient, inverseOf(order))],
  );
}

const inverseOf = (order: readonly number[]): number[] => order.map((_, axis) => order.indexOf(axis));
