/** Loads columns of CSV files. */
import { FileFormatError } from "../../core/errors.ts";
import { aPath, flag } from "../../core/kinds.ts";
import { type Kind, named, operand, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { fileError } from "../file_errors.ts";
import { checkColumns, dtypesByName, type Fail, inDType, someNames, type Table, tensorOf } from "./columns.ts";

/** Options of {@link loadCsv}. */
export interface LoadCsvOptions {
  /** The character that separates values. Default `","`. */
  delimiter?: string | undefined;
  /** Whether the first line has the names of the columns. If not, they are `"0"`, `"1"`, … Default true. */
  header?: boolean | undefined;
  /** The columns to return. Default: all. */
  columns?: readonly string[] | undefined;
  /** The dtypes of columns of numbers. Default: by their contents. */
  dtypes?: Readonly<Record<string, DType>> | undefined;
}

const aDelimiter: Kind<string> = {
  expected: "one character other than a quote or a line break",
  parse: (value) => (typeof value === "string" && /^[^"\r\n\ufeff]$/u.test(value) ? value : undefined),
};

const csvParameters = parameters("loadCsv", {
  path: operand(aPath),
  delimiter: named(aDelimiter, ","),
  header: named(flag, true),
  columns: named(someNames),
  dtypes: named(dtypesByName, new Map<string, DType>()),
});

/**
 * Loads the columns of a CSV file (RFC 4180) in UTF-8. Columns of integers become int64, of other numbers float32, of
 * `true` and `false` bool; all others become lists of strings. A missing number (an empty cell, `NA`, `N/A`, `NaN`,
 * `nan`, `null`) is NaN, which makes a column of integers float32. Empty lines are skipped.
 *
 * @returns the columns by name: tensors [rows], or lists
 *
 * @example
 * const { sepal, petal, species } = await io.loadCsv("iris.csv", { dtypes: { sepal: "float64" } });
 * const x = stack([sepal, petal], 1); // [150, 2]
 *
 * @throws {FileError} for a file that does not exist or can't be read. @throws {FileFormatError} `badUtf8`,
 * `badQuotes`; `otherLength` for a row with more or fewer values than columns; `duplicateName`. @throws {ArgumentError}
 * `unknownColumn`. @throws {DTypeError} `notNumbers` if `dtypes` has a column of strings.
 */
export function loadCsv(path: string, options?: LoadCsvOptions): Promise<Table>;
export async function loadCsv(...values: unknown[]): Promise<Table> {
  const { path, delimiter, header, columns, dtypes } = csvParameters(values);
  const fail: Fail = (code, message) => new FileFormatError("loadCsv", code, path, message);
  const rows = await rowsOf(await textOf(path, fail), delimiter, fail);
  const names = namesOf(header ? (rows.shift() ?? []) : (rows[0] ?? []).map((_, at) => String(at)), fail);
  checkLengths(rows, names.length, header ? 2 : 1, fail);
  const asked = columns ?? names;
  checkColumns("loadCsv", [...asked, ...dtypes.keys()], names);
  return Object.fromEntries(
    asked.map((name) => {
      const at = names.indexOf(name);
      const cells = rows.map((row) => row[at]);
      return [name, inDType("loadCsv", name, columnOf(cells, dtypes.get(name)), dtypes.get(name))];
    }),
  );
}

async function textOf(path: string, fail: Fail): Promise<string> {
  const { readFile } = await import("node:fs/promises"); // takes 2 ms to load
  const bytes = await readFile(path).catch((cause: unknown) => {
    throw fileError("loadCsv", path, cause);
  });
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw fail("badUtf8", "expected the file to be UTF-8, got other bytes");
  }
}

/** Parses the cells of each row. The package is loaded on first use. */
async function rowsOf(text: string, delimiter: string, fail: Fail): Promise<string[][]> {
  const { default: Papa } = await import("papaparse");
  const { data, errors } = Papa.parse<string[]>(text, { delimiter, skipEmptyLines: true });
  const [first] = errors;
  if (first) throw fail("badQuotes", `expected a closing quote before a delimiter (row ${(first.row ?? 0) + 1})`);
  return data;
}

function namesOf(names: readonly string[], fail: Fail): string[] {
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw fail("duplicateName", `expected columns with different names, got ${twice} twice`);
  return [...names];
}

function checkLengths(rows: readonly string[][], expected: number, first: number, fail: Fail): void {
  const at = rows.findIndex(({ length }) => length !== expected);
  if (at >= 0) throw fail("otherLength", `expected ${expected} values in row ${at + first}, got ${rows[at].length}`);
}

const MISSING = new Set(["", "NA", "N/A", "NaN", "nan", "null"]);
const WHOLE = /^[+-]?\d+$/;
const NUMBER = /^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?)$/i;
const TRUTH = new Set(["true", "false"]);
const [LEAST, MOST] = [-(2n ** 63n), 2n ** 63n - 1n];

/** Converts a column by its contents. Numbers are read as float64 unless float32 is the requested or default dtype. */
function columnOf(cells: readonly string[], dtype: DType | undefined): Tensor | string[] {
  const trimmed = cells.map((cell) => cell.trim());
  const shape = [cells.length];
  if (cells.length > 0 && trimmed.every((cell) => TRUTH.has(cell.toLowerCase())))
    return tensorOf(
      Uint8Array.from(trimmed, (cell) => Number(/^t/i.test(cell))),
      "bool",
      shape,
    );
  if (cells.length > 0 && trimmed.every(isInt64))
    return tensorOf(BigInt64Array.from(trimmed, bigintOf), "int64", shape);
  if (!trimmed.every((cell) => MISSING.has(cell) || NUMBER.test(cell)) || cells.length === 0) return [...cells];
  const isWide = dtype !== undefined && dtype !== "float32";
  return isWide
    ? tensorOf(Float64Array.from(trimmed, numberOf), "float64", shape)
    : tensorOf(Float32Array.from(trimmed, numberOf), "float32", shape);
}

function isInt64(cell: string): boolean {
  if (!WHOLE.test(cell)) return false;
  if (cell.length <= 18) return true;
  const value = bigintOf(cell);
  return value >= LEAST && value <= MOST;
}

const bigintOf = (cell: string): bigint => BigInt(cell.startsWith("+") ? cell.slice(1) : cell);

function numberOf(cell: string): number {
  if (MISSING.has(cell)) return Number.NaN;
  const infinite = /^([+-]?)inf/i.exec(cell);
  return infinite ? Number(`${infinite[1]}Infinity`) : Number(cell);
}
