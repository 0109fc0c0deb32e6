/** Axes and lists of sizes. */
import { tensor as tensorOf } from "../../ops/creation/tensor.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { NodeProblem } from "../errors.ts";

/** Makes a tensor of int64. */
export const int64 = (values: readonly number[], shape: readonly number[] = [values.length]): Tensor<"int64"> =>
  tensorOf(values.map(BigInt), { shape, dtype: "int64" });

/** Returns axes from the front, sorted. */
export const axesOf = (axes: readonly number[], rank: number): number[] =>
  axes.map((axis) => axisOf(axis, rank)).sort((a, b) => a - b);

/** Returns an axis from the front. @throws {NodeProblem} if there is no such axis */
export function axisOf(axis: number, rank: number): number {
  if (!Number.isInteger(axis) || axis < -rank || axis >= Math.max(rank, 1))
    throw new NodeProblem(`expected an axis of a tensor of rank ${rank}, got ${axis}`);
  return axis < 0 ? axis + rank : axis;
}
