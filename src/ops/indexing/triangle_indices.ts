/** The coordinates of triangles of matrices. */
import { named as underName } from "../../backend/dispatch.ts";
import { aNumber, someNumber } from "../../core/kinds.ts";
import { type Given, named, optional, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aDType } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
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
  dtype: named(aDType, "int64"),
} as const;

/** Options of {@link trilIndices} and {@link triuIndices}. */
export interface TriangleIndicesOptions<D extends DType = "int64"> {
  /** The diagonal up to which, or from which on, elements are in the triangle. Default 0, the main one. */
  offset?: number | undefined;
  /** Default int64. */
  dtype?: D | undefined;
}

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
export function trilIndices<D extends DType = "int64">(
  row: number,
  col: number,
  ...options: Given<TriangleIndicesOptions<D>, ["offset"]>
): Tensor<D>;
export function trilIndices(...values: unknown[]): Tensor {
  const { row, col, offset, dtype } = trilIndicesParameters(values);
  return toDType(
    coordinates("trilIndices", row, col, (square) => tril(square, offset)),
    dtype,
  );
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
export function triuIndices<D extends DType = "int64">(
  row: number,
  col: number,
  ...options: Given<TriangleIndicesOptions<D>, ["offset"]>
): Tensor<D>;
export function triuIndices(...values: unknown[]): Tensor {
  const { row, col, offset, dtype } = triuIndicesParameters(values);
  return toDType(
    coordinates("triuIndices", row, col, (square) => triu(square, offset)),
    dtype,
  );
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
