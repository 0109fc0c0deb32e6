/** The sizes of results of adaptive pooling. */
import { either, listOf, nothing, someNumber } from "../../core/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { alongAxes } from "../convolution/geometry.ts";

/** A size along all axes, or each; null leaves an axis as long as it is. */
export type AdaptiveSize = number | null | readonly (number | null)[];

const sizeKind = either(someNumber, nothing);
export const adaptiveSize = either(sizeKind, listOf(sizeKind, "a list of numbers and null"));

/** The size along each of the last `rank` axes. @throws {ArgumentError} */
export function adaptiveSizes(operation: string, x: Tensor, given: AdaptiveSize, rank: number): number[] {
  const own = x.shape.slice(-rank);
  if (typeof given === "number") return alongAxes(operation, "outputSize", given, rank, 1);
  const list = given === null || (given.length === 1 && given[0] === null) ? own : given;
  return alongAxes(
    operation,
    "outputSize",
    list.map((size, at) => size ?? own[at] ?? 0),
    rank,
    1,
  );
}
