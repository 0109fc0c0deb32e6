import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { axis, someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { normalizeAxis } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { embed } from "./embed.ts";
import { viewOf } from "./view.ts";

/** Options of {@link diagonal}: the diagonal and its two axes. */
export interface DiagonalOptions {
  /** The diagonal: 0 is the main diagonal, positive values are above it, negative below. Default 0. */
  offset?: number;
  /** The axis of the rows. Default 0. */
  dim1?: number;
  /** The axis of the columns. Default 1. */
  dim2?: number;
}

/**
 * Returns a view of a diagonal of two axes, which becomes the last axis of the result. It is empty if the offset is out
 * of range.
 *
 * @example
 * diagonal(tensor([[1, 2], [3, 4]])); // [1, 4]
 *
 * @throws {ShapeError} for an axis out of range, or the same axis twice.
 */
export function diagonal<D extends DType>(
  x: Tensor<D>,
  ...options: Given<DiagonalOptions, ["offset", "dim1", "dim2"]>
): Tensor<D>;
export function diagonal(...values: unknown[]): Tensor {
  const { x, offset, dim1, dim2 } = diagonalParameters(values);
  const row = normalizeAxis("diagonal", dim1, x.rank, "dim1");
  const column = normalizeAxis("diagonal", dim2, x.rank, "dim2");
  if (row === column || x.rank < 2)
    throw new ShapeError("diagonal", "axisTwice", `dim1 ${dim1} and dim2 ${dim2} are the same axis of ${x.describe()}`);
  checkOffset("diagonal", offset);
  const [rows, columns] = [x.shape[row] + Math.min(offset, 0), x.shape[column] - Math.max(offset, 0)];
  const length = Math.max(0, Math.min(rows, columns));
  const start = offset < 0 ? -offset * x.strides[row] : offset * x.strides[column];
  const others = (values: readonly number[]) => values.filter((_, at) => at !== row && at !== column);
  const shape = x.shape;
  return viewOf(
    "diagonal",
    x,
    [...others(x.shape), length],
    [...others(x.strides), x.strides[row] + x.strides[column]],
    length === 0 ? x.offset : x.offset + start,
    ([gradient]) => [embed(gradient, shape, (whole) => diagonal(whole, { offset, dim1: row, dim2: column }))],
  );
}
diagonal.method = "same" as const;
const diagonalParameters = parameters("diagonal", {
  x: operand(aTensor),
  offset: optional(someNumber, 0),
  dim1: optional(axis, 0),
  dim2: optional(axis, 1),
});

/** Checks the offset of a diagonal. @throws {ArgumentError} if a diagonal's offset is not a whole number. */
export function checkOffset(operation: string, offset: number): void {
  if (!Number.isSafeInteger(offset))
    throw new ArgumentError(operation, "invalidOffset", `expected diagonal to be a whole number, got ${offset}`);
}
