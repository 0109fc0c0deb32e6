/** Converts Parquet's types to dtypes, and columns of numbers to tensors. */
import type { ColumnData, SchemaElement, SchemaTree } from "hyparquet";
import { type DType, dtypeFacts } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type Fail, tensorOf } from "./columns.ts";

/** The contents of a column: numbers of a dtype, or lists of them; the dtype is undefined for other contents. */
export interface Kept {
  readonly dtype: DType | undefined;
  readonly isList: boolean;
}

/** Converted types of integers. 16-bit integers become int32, as there is no 16-bit dtype. */
const integers: Readonly<Record<string, DType>> = {
  INT_8: "int8",
  INT_16: "int32",
  INT_32: "int32",
  INT_64: "int64",
  UINT_8: "uint8",
  UINT_16: "int32",
  UINT_32: "uint32",
  UINT_64: "int64",
};

const physical: Readonly<Record<string, DType>> = {
  BOOLEAN: "bool",
  INT32: "int32",
  INT64: "int64",
  FLOAT: "float32",
  DOUBLE: "float64",
};

/** The dtype of a column's numbers. */
function dtypeOf({ type, converted_type, logical_type }: SchemaElement): DType | undefined {
  if (logical_type?.type === "FLOAT16") return "float16";
  if (converted_type === "DECIMAL" || logical_type?.type === "DECIMAL") return "float64";
  if (converted_type !== undefined) return integers[converted_type];
  if (logical_type?.type === "INTEGER")
    return integers[`${logical_type.isSigned ? "INT" : "UINT"}_${logical_type.bitWidth}`];
  return logical_type === undefined ? physical[type ?? ""] : undefined;
}

/** Returns the kind of a column's contents according to the schema. */
export function keptOf({ element, children }: SchemaTree): Kept {
  if (children.length === 0) return { dtype: dtypeOf(element), isList: false };
  const [group] = children;
  const [item] = group?.children ?? [];
  const isList = element.converted_type === "LIST" && children.length === 1 && group?.children.length === 1;
  return { dtype: isList && item.children.length === 0 ? dtypeOf(item.element) : undefined, isList };
}

type Values = readonly unknown[];

/**
 * Joins the values of all chunks, as a tensor if they are numbers. @throws {FileFormatError} `outOfRange`, `damaged`
 */
export function columnOf(
  name: string,
  { dtype, isList }: Kept,
  chunks: readonly ColumnData[],
  rows: number,
  fail: Fail,
): Tensor | unknown[] {
  const ordered = chunks.toSorted((a, b) => a.rowStart - b.rowStart);
  const values: Values = ordered.flatMap(({ columnData }) => Array.from(columnData));
  if (values.length !== rows)
    throw fail("damaged", `expected ${rows} values in the column ${JSON.stringify(name)}, got ${values.length}`);
  if (dtype === undefined) return values.map((value) => value ?? null);
  if (!isList) return numbersOf(name, values, dtype, [rows], fail) ?? values.map((value) => value ?? null);
  const lists = values.map((value) => (value ?? []) as Values);
  const size = lists[0]?.length ?? 0;
  const isEven = size > 0 && lists.every(({ length }) => length === size);
  return (isEven ? numbersOf(name, lists.flat(), dtype, [rows, size], fail) : undefined) ?? [...values];
}

/**
 * Makes a tensor of numbers. Returns undefined if booleans are missing, since no boolean stands for a missing value.
 */
function numbersOf(
  name: string,
  values: Values,
  dtype: DType,
  shape: readonly number[],
  fail: Fail,
): Tensor | undefined {
  const hasMissing = values.some((value) => value === null || value === undefined);
  if (hasMissing && dtype === "bool") return undefined;
  const { kind, array } = dtypeFacts[dtype];
  if (hasMissing && kind !== "float") return numbersOf(name, values, "float64", shape, fail);
  if (dtype !== "int64")
    return tensorOf((array as typeof Float32Array).from(values as number[], asNumber), dtype, shape);
  const wide = (values as (number | bigint)[]).map(BigInt);
  const wrong = wide.find((value) => BigInt.asIntN(64, value) !== value);
  if (wrong !== undefined)
    throw fail("outOfRange", `expected integers of int64 in the column ${JSON.stringify(name)}, got ${wrong}`);
  return tensorOf(BigInt64Array.from(wide), dtype, shape);
}

const asNumber = (value: unknown): number => (value === null || value === undefined ? Number.NaN : Number(value));
