import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { ArgumentError } from "../../core/errors.ts";
import { axis as axisKind, flag, someNumber } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { normalizeAxis } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { scatterAdd } from "../indexing/scatter_add.ts";
import { filled } from "../view/embed.ts";
import { reshape } from "../view/reshape.ts";
import type { SortAttributes } from "./primitive.ts";
import { sortCpu } from "./sort.cpu.ts";
import { sortMetal } from "./sort.metal.ts";
import { sortReference } from "./sort.reference.ts";

const sortPrimitive = definePrimitive<SortAttributes>({
  name: "sort",
  family: "sorting",
  implementations: { metal: sortMetal, cpu: sortCpu, reference: sortReference },
});

/** Options of {@link sort} and {@link argsort}. */
export interface SortOptions {
  /** The axis to sort along. Default −1. */
  dim?: number;
  /** Whether to put the largest elements first. Default false. */
  descending?: boolean;
  /**
   * Accepted for compatibility with PyTorch. Sorting is always stable: equal elements keep the order of their indices.
   */
  stable?: boolean;
}

/** Arguments of {@link SortOptions}: in an object, or `dim` and `descending` by position. */
export type SortArguments = Given<SortOptions, ["dim", "descending"]>;

/** Result of {@link sort} and {@link topk}: elements in order, and their indices. */
export interface Sorted<D extends DType> {
  readonly values: Tensor<D>;
  /** The indices along the sorted axis. */
  readonly indices: Tensor<"int64">;
}

/**
 * Sorts the elements along an axis and returns them with their indices. Sorting is stable. NaN counts as larger than
 * all numbers, and 0 and −0 as equal.
 *
 * @returns values and indices int64, both of x's shape
 *
 * @example
 * sort(tensor([3, 1, 2])); // values [1, 2, 3], indices [1, 2, 0]
 *
 * @throws {ShapeError} for an axis out of range.
 */
export function sort<D extends DType>(x: Tensor<D>, ...options: SortArguments): Sorted<D>;
export function sort(...values: unknown[]): Sorted<DType> {
  const { x, dim, descending } = sortParameters(values);
  const axis = normalizeAxis("sort", dim, x.rank);
  return firstInOrder("sort", x, axis, x.shape[axis] ?? 1, descending);
}
sort.method = "declared" as const;
const sorting = {
  x: operand(aTensor),
  dim: optional(axisKind, -1),
  descending: optional(flag, false),
  stable: named(flag, true),
} as const;
const sortParameters = parameters("sort", sorting);

/**
 * Returns the indices that would sort an axis.
 *
 * @returns a tensor of x's shape
 *
 * @example
 * argsort(tensor([3, 1, 2])); // [1, 2, 0]
 *
 * @see {@link sort}
 */
export function argsort(x: Tensor, ...options: SortArguments): Tensor<"int64">;
export function argsort(...given: unknown[]): Tensor<"int64"> {
  const { x, dim, descending } = argsortParameters(given);
  const axis = normalizeAxis("argsort", dim, x.rank);
  const { values, indices } = noGrad(() => firstInOrder("argsort", x, axis, x.shape[axis] ?? 1, descending));
  values.dispose();
  return indices;
}
argsort.method = "int64" as const;
const argsortParameters = parameters("argsort", sorting);

/** Options of {@link topk}. */
export interface TopkOptions {
  /** The axis. Default −1, the last one. */
  dim?: number;
  /** Whether to return the largest elements, or else the smallest. Default true. */
  largest?: boolean;
  /** Accepted for compatibility with PyTorch. The result is always sorted. */
  sorted?: boolean | undefined;
}

/** Arguments of {@link TopkOptions}: in an object or by position. */
export type TopkArguments = Given<TopkOptions, ["dim", "largest", "sorted"]>;

/**
 * Returns the `k` largest (or smallest) elements along an axis, in order, and their indices. If elements are equal,
 * those with the lowest indices are chosen. NaN counts as larger than all numbers.
 *
 * @returns values and indices int64, of x's shape with k elements along the axis
 *
 * @example
 * topk(tensor([3, 1, 2]), 2); // values [3, 2], indices [0, 2]
 *
 * @throws {ShapeError} for an axis out of range.
 * @throws {ArgumentError} for a `k` that is not a whole number from 0 to the size of the axis.
 */
export function topk<D extends DType>(x: Tensor<D>, k: number, ...options: TopkArguments): Sorted<D>;
export function topk(...values: unknown[]): Sorted<DType> {
  const { x, k, dim, largest } = topkParameters(values);
  const axis = normalizeAxis("topk", dim, x.rank);
  const size = x.shape[axis] ?? 1;
  if (!Number.isInteger(k) || k < 0 || k > size)
    throw new ArgumentError(
      "topk",
      "invalidCount",
      `expected k to be a whole number from 0 to ${size}, the size of axis ${dim} of ${x.describe()}, got ${k}`,
    );
  return firstInOrder("topk", x, axis, k, largest);
}
topk.method = "declared" as const;
const topkParameters = parameters("topk", {
  x: operand(aTensor),
  k: required(someNumber),
  dim: optional(axisKind, -1),
  largest: optional(flag, true),
  sorted: optional(flag, true),
});

function firstInOrder<D extends DType>(
  operation: string,
  x: Tensor<D>,
  axis: number,
  k: number,
  descending: boolean,
): Sorted<D> {
  if (x.rank === 0) return withoutAxes(firstInOrder(operation, reshape(x, [1]), 0, k, descending));
  const shape = x.shape.with(axis, k);
  const [values, indices] = executeMany(
    sortPrimitive,
    [x],
    [
      { shape, dtype: x.dtype },
      { shape, dtype: "int64" },
    ],
    { dim: axis, descending },
    operation,
  );
  const inputShape = x.shape;
  record(operation, [x], [values], [indices], ([gradient], [saved]) => [
    scatterAdd(filled(inputShape, gradient.dtype, 0), saved, gradient, { dim: axis }),
  ]);
  return { values, indices };
}

const withoutAxes = <D extends DType>({ values, indices }: Sorted<D>): Sorted<D> => ({
  values: reshape(values, values.size === 1 ? [] : [0]),
  indices: reshape(indices, indices.size === 1 ? [] : [0]),
});
