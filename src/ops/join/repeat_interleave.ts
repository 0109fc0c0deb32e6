import { checkElements, underName } from "../../backend/dispatch.ts";
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { type AxisArguments, axis as axisKind, either, someNumber } from "../../core/kinds.ts";
import { named, operand, optional, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { clone } from "../copy/copy.ts";
import { tensor } from "../creation/tensor.ts";
import { indexSelect } from "../indexing/gather.ts";
import { anIndex, checkVector, type IndexDType } from "../indexing/indices.ts";
import { expand } from "../view/expand.ts";
import { flatten } from "../view/flatten.ts";
import { reshape } from "../view/reshape.ts";
import { axisOf } from "../view/slice.ts";
import { unsqueeze } from "../view/squeeze.ts";

/** Options of {@link repeatInterleave}. */
export interface RepeatInterleaveOptions {
  /** The axis. Default: x is flattened first. */
  dim?: number | undefined;
  /**
   * The number of slices of the result, for compatibility with PyTorch. It is ignored: `repeats` determines the size.
   */
  outputSize?: number | undefined;
}

/**
 * Repeats each slice of an axis several times in a row.
 *
 * @param repeats the number of repeats, or an integer vector with one number for each slice, which is read on the host
 *
 * @example
 * repeatInterleave(tensor([1, 2]), 2); // float32 [1, 1, 2, 2]
 * repeatInterleave(tensor([1, 2]), tensor([0n, 3n])); // float32 [2, 2, 2]
 *
 * @throws {ShapeError} for an axis out of range, or if the number of repeats is not that of the slices.
 * @throws {ArgumentError} for repeats that are negative or not whole.
 */
export function repeatInterleave<D extends DType>(
  x: Tensor<D>,
  repeats: number | Tensor<IndexDType>,
  ...options: AxisArguments<RepeatInterleaveOptions>
): Tensor<D>;
export function repeatInterleave(...values: unknown[]): Tensor {
  const { x, repeats, dim } = repeatInterleaveParameters(values);
  const axis = dim === undefined ? 0 : axisOf("repeatInterleave", x, dim);
  const size = dim === undefined ? x.size : x.shape[axis];
  checkElements("repeatInterleave", [x]);
  return underName("repeatInterleave", () =>
    tidy(() => {
      const input = dim === undefined ? flatten(x) : x;
      if (typeof repeats === "number") return repeated(input, axis, checkedCount(repeats));
      const places = countsOf(repeats, size).flatMap((count, at) => new Array<bigint>(count).fill(BigInt(at)));
      return indexSelect(input, tensor(BigInt64Array.from(places)), { dim: axis });
    }),
  );
}
repeatInterleave.method = "same" as const;
const repeatInterleaveParameters = parameters("repeatInterleave", {
  x: operand(aTensor),
  repeats: required(either(someNumber, anIndex)),
  dim: optional(axisKind),
  outputSize: named(someNumber),
});

/** Repeats each slice equally often: expands a new axis after the repeated one without copying, then copies once. */
function repeated(x: Tensor, axis: number, count: number): Tensor {
  if (x.rank === 0) return repeated(flatten(x), axis, count);
  const [before, size, after] = [x.shape.slice(0, axis), x.shape[axis], x.shape.slice(axis + 1)];
  const each = expand(unsqueeze(x, axis + 1), [...before, size, count, ...after]);
  return reshape(clone(each), [...before, size * count, ...after]);
}

function countsOf(repeats: Tensor<IndexDType>, size: number): number[] {
  const counts = Array.from(checkVector("repeatInterleave", repeats).dataSync(), Number).map(checkedCount);
  if (counts.length === 1) return new Array<number>(size).fill(counts[0]);
  if (counts.length === size) return counts;
  throw new ShapeError(
    "repeatInterleave",
    "lengthsDiffer",
    `expected one repeat or ${size}, one for each slice, got ${repeats.describe()}`,
  );
}

/** A larger number would not fit an array of indices. */
const MOST_REPEATS = 2 ** 31;

function checkedCount(count: number): number {
  if (Number.isInteger(count) && count >= 0 && count <= MOST_REPEATS) return count;
  throw new ArgumentError(
    "repeatInterleave",
    "invalidCount",
    `expected repeats to be whole numbers of at least 0, got ${count}`,
  );
}
