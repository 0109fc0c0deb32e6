/** Coordinates of the lower and upper triangle of a matrix. */
import { execute, underName } from "../../backend/dispatch.ts";
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
import {
  hasTriangleIndicesKernel,
  type TriangleIndicesAttributes,
  triangleIndicesPrimitive,
  triangleSize,
} from "./triangle_indices.cpu.ts";

const triangleOf = {
  row: required(someNumber),
  col: required(someNumber),
  offset: optional(aNumber({ holds: Number.isSafeInteger, expected: "a whole number" }), 0),
  dtype: named(aDType, "int64"),
} as const;

/** Options of {@link trilIndices} and {@link triuIndices}. */
export interface TriangleIndicesOptions<D extends DType = "int64"> {
  /** The diagonal at the edge of the triangle, included. Default 0, the main one. */
  offset?: number | undefined;
  /** The dtype of the indices. Default int64. */
  dtype?: D | undefined;
}

/**
 * Returns the coordinates of the lower triangle of a matrix in row-major order: row numbers in `result[0]`, column
 * numbers in `result[1]`.
 *
 * @param row the number of rows
 * @param col the number of columns
 * @param offset the last diagonal included: 0 is the main diagonal, positive values are above it, negative below
 * @returns int64 [2, count]
 *
 * @example
 * trilIndices(2, 2); // int64 [[0, 1, 1], [0, 0, 1]]
 *
 * @throws {ShapeError} for sizes that are not whole numbers of at least 0.
 * @throws {ArgumentError} for a fractional offset.
 */
export function trilIndices<D extends DType = "int64">(
  row: number,
  col: number,
  ...options: Given<TriangleIndicesOptions<D>, ["offset"]>
): Tensor<D>;
export function trilIndices(...values: unknown[]): Tensor {
  const { row, col, offset, dtype } = trilIndicesParameters(values);
  return toDType(coordinates("trilIndices", { lower: true, rows: row, columns: col, diagonal: offset }), dtype);
}
const trilIndicesParameters = parameters("trilIndices", triangleOf);

/**
 * Returns the coordinates of the upper triangle of a matrix in row-major order; see {@link trilIndices}.
 *
 * @param row the number of rows
 * @param col the number of columns
 * @param offset the first diagonal included: 0 is the main diagonal, positive values are above it, negative below
 * @returns int64 [2, count]
 *
 * @example
 * triuIndices(2, 2); // int64 [[0, 0, 1], [0, 1, 1]]
 *
 * @throws {ShapeError} for sizes that are not whole numbers of at least 0.
 * @throws {ArgumentError} for a fractional offset.
 */
export function triuIndices<D extends DType = "int64">(
  row: number,
  col: number,
  ...options: Given<TriangleIndicesOptions<D>, ["offset"]>
): Tensor<D>;
export function triuIndices(...values: unknown[]): Tensor {
  const { row, col, offset, dtype } = triuIndicesParameters(values);
  return toDType(coordinates("triuIndices", { lower: false, rows: row, columns: col, diagonal: offset }), dtype);
}
const triuIndicesParameters = parameters("triuIndices", triangleOf);

function coordinates(operation: string, triangle: TriangleIndicesAttributes): Tensor<"int64"> {
  const { lower, rows, columns, diagonal } = triangle;
  checkCreation(operation, [rows, columns], "bool");
  if (hasTriangleIndicesKernel())
    return execute(triangleIndicesPrimitive, [], [2, triangleSize(triangle)], "int64", triangle, operation);
  const part = lower ? tril : triu;
  return underName(operation, () =>
    tidy(() => contiguous(transpose(nonzero(part(ones([rows, columns], { dtype: "bool" }), diagonal)), 0, 1))),
  );
}
