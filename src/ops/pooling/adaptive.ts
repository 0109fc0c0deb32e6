/** Output sizes of adaptive pooling. */
import { either, listOf, nothing, someNumber } from "../../core/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { alongAxes } from "../convolution/geometry.ts";

/** One output size for all axes, or one for each; null keeps the size of an axis. */
export type AdaptiveSize = number | null | readonly (number | null)[];

const sizeKind = either(someNumber, nothing);
export const adaptiveSize = either(sizeKind, listOf(sizeKind, "a list of numbers and null"));

/** Returns the output size of each of the last `rank` axes. @throws {ArgumentError} */
export function adaptiveSizes(operation: string, x: Tensor, given: AdaptiveSize, rank: number): number[] {
  const input = x.shape.slice(-rank);
  if (typeof given === "number") return alongAxes(operation, "outputSize", given, rank, 1);
  const list = given === null || (given.length === 1 && given[0] === null) ? input : given;
  return alongAxes(
    operation,
    "outputSize",
    list.map((size, at) => size ?? input[at] ?? 0),
    rank,
    1,
  );
}
