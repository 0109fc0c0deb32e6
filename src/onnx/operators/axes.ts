/** Axes and lists of sizes. */
import { tensor as tensorOf } from "../../ops/creation/tensor.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { NodeProblem } from "../errors.ts";

const LARGEST = 2n ** 63n - 1n;

/** Makes an int64 tensor. Numbers can't hold the largest int64: they round it to 2^63, which this function undoes. */
export const int64 = (values: readonly number[], shape: readonly number[] = [values.length]): Tensor<"int64"> =>
  tensorOf(
    values.map((value) => (value >= 2 ** 63 ? LARGEST : BigInt(value))),
    { shape, dtype: "int64" },
  );

/** Returns nonnegative axes, sorted. */
export const axesOf = (axes: readonly number[], rank: number): number[] =>
  axes.map((axis) => axisOf(axis, rank)).sort((a, b) => a - b);

/** Returns a nonnegative axis. @throws {NodeProblem} if there is no such axis */
export function axisOf(axis: number, rank: number): number {
  if (!Number.isInteger(axis) || axis < -rank || axis >= Math.max(rank, 1))
    throw new NodeProblem(`expected an axis of a tensor of rank ${rank}, got ${axis}`);
  return axis < 0 ? axis + rank : axis;
}

/**
 * The maximum length of a list whose length a file sets. Without this limit, a damaged file could take minutes and
 * exhaust memory.
 */
const LONGEST = 1 << 24;

/** Returns the values for 0, 1, … up to `length`. @throws {NodeProblem} if the list is too long */
export function listOf<Value>(length: number, valueAt: (at: number) => Value): Value[] {
  if (length > LONGEST) throw new NodeProblem(`a list of ${length} elements is too long; at most ${LONGEST}`);
  return Array.from({ length }, (_, at) => valueAt(at));
}
