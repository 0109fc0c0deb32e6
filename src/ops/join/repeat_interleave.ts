import { named as underName } from "../../backend/dispatch.ts";
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { type AxisArguments, axis as axisKind, either, someNumber } from "../../core/kinds.ts";
import { operand, optional, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { tensor } from "../creation/tensor.ts";
import { indexSelect } from "../indexing/gather.ts";
import { anIndex, checkVector, type IndexDType } from "../indexing/indices.ts";
import { flatten } from "../view/flatten.ts";
import { axisOf } from "../view/slice.ts";

/** Options of {@link repeatInterleave}. */
export interface RepeatInterleaveOptions {
  /** The axis; where it is left out, x is taken as one row. */
  dim?: number | undefined;
}

/**
 * Each slice of an axis several times in a row.
 *
 * @param repeats how many times: a number, or a vector of integers with one for each slice, which is read
 *
 * @example
 * repeatInterleave(tensor([1, 2]), 2); // float32 [1, 1, 2, 2]
 * repeatInterleave(tensor([1, 2]), tensor([0n, 3n])); // float32 [2, 2, 2]
 *
 * @throws {ShapeError} for an axis out of range, or another number of repeats. @throws {ArgumentError} for repeats that
 * are negative or not whole.
 */
export function repeatInterleave<D extends DType>(
  x: Tensor<D>,
  repeats: number | Tensor<IndexDType>,
  ...options: AxisArguments<RepeatInterleaveOptions>
): Tensor<D>;
export function repeatInterleave(...values: unknown[]): Tensor {
  const { x, repeats, dim } = repeatInterleaveParameters(values);
  const axis = dim === undefined ? 0 : axisOf("repeatInterleave", x, dim);
  const size = dim === undefined ? x.size : x.shape[axis]!;
  const counts = countsOf(repeats, size);
  return underName("repeatInterleave", () =>
    tidy(() => {
      const places = counts.flatMap((count, at) => new Array<bigint>(count).fill(BigInt(at)));
      const index = tensor(BigInt64Array.from(places));
      return indexSelect(dim === undefined ? flatten(x) : x, index, { dim: axis });
    }),
  );
}
repeatInterleave.method = "same" as const;
const repeatInterleaveParameters = parameters("repeatInterleave", {
  x: operand(aTensor),
  repeats: required(either(someNumber, anIndex)),
  dim: optional(axisKind),
});

function countsOf(repeats: number | Tensor<IndexDType>, size: number): number[] {
  if (typeof repeats === "number") return new Array<number>(size).fill(checkedCount(repeats));
  const counts = Array.from(checkVector("repeatInterleave", repeats).dataSync(), Number).map(checkedCount);
  if (counts.length === 1) return new Array<number>(size).fill(counts[0]!);
  if (counts.length === size) return counts;
  throw new ShapeError(
    "repeatInterleave",
    "lengthsDiffer",
    `expected one repeat or ${size}, one for each slice, got ${repeats.describe()}`,
  );
}

/** More would not fit an array of indices. */
const MOST_REPEATS = 2 ** 31;

function checkedCount(count: number): number {
  if (Number.isInteger(count) && count >= 0 && count <= MOST_REPEATS) return count;
  throw new ArgumentError(
    "repeatInterleave",
    "invalidCount",
    `expected repeats to be whole numbers of at least 0, got ${count}`,
  );
}
