/** The coordinates of triangles of matrices. */
import { named as underName } from "../../backend/dispatch.ts";
import { aNumber, someNumber } from "../../core/kinds.ts";
import { optional, parameters, required } from "../../core/parameters.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { contiguous } from "../copy/copy.ts";
import { checkCreation } from "../creation/create.ts";
import { ones } from "../creation/full.ts";
import { transpose } from "../view/permute.ts";
import { nonzero } from "./nonzero.ts";
import { tril, triu } from "./triangle.ts";

const triangleOf = {
  row: required(someNumber),
  col: required(someNumber),
  offset: optional(aNumber({ holds: Number.isSafeInteger, expected: "a whole number" }), 0),
} as const;

/**
 * The coordinates of the lower triangle of a matrix, in row-major order: the rows in the first line, the columns in the
 * second.
 *
 * @param row how many rows the matrix has
 * @param col how many columns
 * @param offset the diagonal that is kept last: 0 the main one, above it positive, below it negative
 * @returns int64 [2, count]
 *
 * @example
 * trilIndices(2, 2); // int64 [[0, 1, 1], [0, 0, 1]]
 *
 * @throws {ShapeError} for sizes that are no whole numbers of at least 0. @throws {ArgumentError} for an offset that is
 * not whole.
 */
export function trilIndices(row: number, col: number, offset?: number): Tensor<"int64">;
export function trilIndices(...values: unknown[]): Tensor<"int64"> {
  const { row, col, offset } = trilIndicesParameters(values);
  return coordinates("trilIndices", row, col, (square) => tril(square, offset));
}
const trilIndicesParameters = parameters("trilIndices", triangleOf);

/**
 * The coordinates of the upper triangle of a matrix, in row-major order: see {@link trilIndices}.
 *
 * @param row how many rows the matrix has
 * @param col how many columns
 * @param offset the diagonal that is kept first: 0 the main one, above it positive, below it negative
 * @returns int64 [2, count]
 *
 * @example
 * triuIndices(2, 2); // int64 [[0, 0, 1], [0, 1, 1]]
 *
 * @throws {ShapeError} for sizes that are no whole numbers of at least 0. @throws {ArgumentError} for an offset that is
 * not whole.
 */
export function triuIndices(row: number, col: number, offset?: number): Tensor<"int64">;
export function triuIndices(...values: unknown[]): Tensor<"int64"> {
  const { row, col, offset } = triuIndicesParameters(values);
  return coordinates("triuIndices", row, col, (square) => triu(square, offset));
}
const triuIndicesParameters = parameters("triuIndices", triangleOf);

function coordinates(
  operation: string,
  rows: number,
  columns: number,
  triangle: (square: Tensor) => Tensor,
): Tensor<"int64"> {
  checkCreation(operation, [rows, columns], "bool");
  return underName(operation, () =>
    tidy(() => contiguous(transpose(nonzero(triangle(ones([rows, columns], { dtype: "bool" }))), 0, 1))),
  );
}
