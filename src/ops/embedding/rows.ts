/** Checks of the operations on rows of a table: the table, the indices, and the padding row. */
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { hasDType, type Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import type { IndexDType } from "../indexing/indices.ts";

/**
 * @throws {ShapeError} for a table that does not have two axes.
 * @throws {DTypeError} for a table that is not floating-point.
 * @throws {DisposedError}
 */
export function checkTable(operation: string, weight: Tensor): void {
  weight.checkAlive(operation);
  if (weight.rank !== 2)
    throw new ShapeError(operation, "wrongRank", `expected weight to be [rows, width], got ${weight.describe()}`);
  if (!isFloat(weight.dtype))
    throw new DTypeError(
      operation,
      "notAFloat",
      `expected weight to have a float dtype, got ${weight.describe()}; convert with toDType(weight, "float32")`,
    );
}

/** Converts integers of any dtype to indices. @throws {DTypeError} for floats and bools. @throws {DisposedError} */
export function wholeIndices(operation: string, what: string, index: Tensor): Tensor<IndexDType> {
  index.checkAlive(operation);
  if (isFloat(index.dtype) || index.dtype === "bool")
    throw new DTypeError(
      operation,
      "notAnIndex",
      `expected ${what} to be integers, got ${index.describe()}; convert with toDType(${what}, "int64")`,
    );
  return hasDType(index, "int32") ? index : toDType(index, "int64");
}

/** Normalizes the padding row; negative values count from the end. @throws {ArgumentError} if it is out of range. */
export function paddingRow(operation: string, weight: Tensor, paddingIndex: number | undefined): number | undefined {
  if (paddingIndex === undefined) return undefined;
  const rows = weight.shape[0];
  if (!Number.isInteger(paddingIndex) || paddingIndex < -rows || paddingIndex >= rows)
    throw new ArgumentError(
      operation,
      "paddingOutOfRange",
      `expected paddingIndex from ${-rows} to ${rows - 1} for a table of ${rows} rows, got ${paddingIndex}`,
    );
  return paddingIndex < 0 ? paddingIndex + rows : paddingIndex;
}
