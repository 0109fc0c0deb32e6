import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { listOf, someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { normalizeAxis } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { clone } from "../copy/copy.ts";
import { transpose } from "../view/permute.ts";
import { flip } from "./flip.ts";

/** Options of {@link rot90}. */
export interface Rot90Options {
  /** The number of quarter turns; a negative number rotates in the other direction. Default 1. */
  k?: number | undefined;
  /** The plane: rotates from the first to the second axis. Default [0, 1]. */
  dims?: readonly number[] | undefined;
}

/**
 * Returns a copy rotated by multiples of 90 degrees in the plane of two axes.
 *
 * @example
 * rot90(tensor([[1, 2], [3, 4]])); // float32 [[2, 4], [1, 3]]
 *
 * @throws {ShapeError} for an axis out of range, or the same axis twice.
 * @throws {ArgumentError} for a fractional k.
 */
export function rot90<D extends DType>(x: Tensor<D>, ...options: Given<Rot90Options, ["k", "dims"]>): Tensor<D>;
export function rot90(...values: unknown[]): Tensor {
  const { x, k, dims } = rot90Parameters(values);
  if (!Number.isSafeInteger(k))
    throw new ArgumentError("rot90", "invalidCount", `expected k to be a whole number, got ${k}`);
  if (dims.length !== 2) throw new ShapeError("rot90", "wrongAxes", `expected dims to be two axes, got ${dims.length}`);
  const [from, to] = tupleOf(
    dims.map((dim) => normalizeAxis("rot90", dim, x.rank, "dims")),
    2,
  );
  if (from === to || x.rank < 2)
    throw new ShapeError(
      "rot90",
      "axisTwice",
      `expected dims to be two axes of ${x.describe()}, got [${dims.join(", ")}]`,
    );
  return tidy(() => {
    const turns = ((k % 4) + 4) % 4;
    if (turns === 0) return clone(x);
    if (turns === 2) return flip(x, [from, to]);
    return flip(transpose(x, from, to), [turns === 1 ? from : to]);
  });
}
rot90.method = "same" as const;
const rot90Parameters = parameters("rot90", {
  x: operand(aTensor),
  k: optional(someNumber, 1),
  dims: optional(listOf(someNumber, "a list of axes"), [0, 1]),
});
