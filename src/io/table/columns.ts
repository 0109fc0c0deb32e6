/** Shared code of table readers: options, and columns of numbers as tensors. */
import { ArgumentError, DTypeError, type FileFormatError } from "../../core/errors.ts";
import { isArray, listOf, text } from "../../core/kinds.ts";
import type { Kind } from "../../core/parameters.ts";
import { nearestName } from "../../core/suggestion.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { type DType, isDType } from "../../tensor/dtype.ts";
import { Tensor } from "../../tensor/tensor.ts";

/** The columns of a table by name: tensors for numbers and booleans, otherwise lists with one item per row. */
export type Table = Record<string, Tensor | unknown[]>;

/** Creates an error about a file. */
export type Fail = (code: string, message: string) => FileFormatError;

/** @internal Accepts names of columns. */
export const someNames: Kind<string[]> = listOf(text, "a list of names");

/** @internal Accepts dtypes by column name. */
export const dtypesByName: Kind<ReadonlyMap<string, DType>> = {
  expected: 'an object of dtypes by column, such as { label: "int64" }',
  parse(value) {
    if (typeof value !== "object" || value === null || isArray(value)) return undefined;
    const entries = Object.entries(value);
    return entries.every((entry): entry is [string, DType] => isDType(entry[1])) ? new Map(entries) : undefined;
  },
};

/** Checks names of columns. @throws {ArgumentError} `unknownColumn`, with the nearest name. */
export function checkColumns(operation: string, asked: Iterable<string>, names: readonly string[]): void {
  for (const name of asked) {
    if (names.includes(name)) continue;
    const nearest = nearestName(name, names);
    const meant = nearest === undefined ? "." : `; did you mean "${nearest}"?`;
    const known = names.slice(0, 20).join(", ");
    throw new ArgumentError(
      operation,
      "unknownColumn",
      `there is no column ${JSON.stringify(name)}${meant} The columns are ${known}${names.length > 20 ? ", …" : ""}`,
    );
  }
}

/** Converts a column to the requested dtype. @throws {DTypeError} `notNumbers` if it is not a tensor. */
export function inDType(operation: string, name: string, column: Tensor | unknown[], dtype: DType | undefined) {
  if (dtype === undefined) return column;
  if (Tensor.isTensor(column)) return column.dtype === dtype ? column : toDType(column, dtype);
  throw new DTypeError(
    operation,
    "notNumbers",
    `expected the column ${JSON.stringify(name)} to have numbers, to convert it to ${dtype}, got other values`,
  );
}

/** Makes a tensor [rows] or [rows, …]. */
export const tensorOf = (values: NodeJS.TypedArray, dtype: DType, shape: readonly number[]): Tensor =>
  tensor(values as Float32Array, { dtype: dtype, shape: [...shape] });
