/** The types of GGUF files: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md */
import { entriesOf } from "../../core/records.ts";
import { numberIn } from "../../core/values.ts";
import type { GgmlFormat } from "../../quant/formats.ts";
import { blockFormats } from "../../quant/formats.ts";
import type { DType } from "../../tensor/dtype.ts";

/** The types of metadata, indexed by number. */
export const valueTypes = [
  "uint8",
  "int8",
  "uint16",
  "int16",
  "uint32",
  "int32",
  "float32",
  "bool",
  "string",
  "array",
  "uint64",
  "int64",
  "float64",
] as const;
/** The type of a value in the metadata of a GGUF file. */
export type GgufType =
  | ("uint8" | "int8" | "uint16" | "int16" | "uint32" | "int32" | "float32")
  | ("bool" | "string" | "array" | "uint64" | "int64" | "float64");

/** A number of up to 32 bits, a bigint of 64 bits, a float, a boolean, or a string. */
export type GgufScalar = number | bigint | boolean | string;

/** A value in the metadata of a GGUF file, with its type. */
export type GgufValue =
  | { readonly type: Exclude<GgufType, "array">; readonly value: GgufScalar }
  | { readonly type: "array"; readonly of: Exclude<GgufType, "array">; readonly value: readonly GgufScalar[] }
  | { readonly type: "array"; readonly of: "array"; readonly value: readonly GgufValue[] };

/** The layout of a number in a file. */
export interface NumberLayout {
  readonly bytes: number;
  read(view: DataView, at: number): number | bigint;
  write(view: DataView, at: number, value: number | bigint): void;
  /** Whether a JavaScript value can be stored exactly. */
  holds(value: unknown): boolean;
}

const whole = (
  bytes: number,
  least: number,
  read: (view: DataView, at: number) => number,
  write: (view: DataView, at: number, value: number) => void,
): NumberLayout => ({
  bytes,
  read,
  write: (view, at, value) => write(view, at, Number(value)),
  holds: (value) => Number.isInteger(value) && Number(value) >= least && Number(value) < least + 2 ** (8 * bytes),
});

const wide = (
  least: bigint,
  read: (view: DataView, at: number) => bigint,
  write: (view: DataView, at: number, value: bigint) => void,
): NumberLayout => ({
  bytes: 8,
  read,
  write: (view, at, value) => write(view, at, BigInt(value)),
  holds: (value) =>
    (typeof value === "bigint" && value >= least && value < least + 2n ** 64n) ||
    (Number.isSafeInteger(value) && BigInt(numberIn(value)) >= least),
});

const isNumber = (value: unknown): boolean => typeof value === "number";

/** The layouts of number types. */
export const numberLayouts: Readonly<Record<Exclude<GgufType, "bool" | "string" | "array">, NumberLayout>> = {
  uint8: whole(
    1,
    0,
    (view, at) => view.getUint8(at),
    (view, at, value) => view.setUint8(at, value),
  ),
  int8: whole(
    1,
    -128,
    (view, at) => view.getInt8(at),
    (view, at, value) => view.setInt8(at, value),
  ),
  uint16: whole(
    2,
    0,
    (view, at) => view.getUint16(at, true),
    (view, at, value) => view.setUint16(at, value, true),
  ),
  int16: whole(
    2,
    -32768,
    (view, at) => view.getInt16(at, true),
    (view, at, value) => view.setInt16(at, value, true),
  ),
  uint32: whole(
    4,
    0,
    (view, at) => view.getUint32(at, true),
    (view, at, value) => view.setUint32(at, value, true),
  ),
  int32: whole(
    4,
    -(2 ** 31),
    (view, at) => view.getInt32(at, true),
    (view, at, value) => view.setInt32(at, value, true),
  ),
  float32: {
    bytes: 4,
    read: (view, at) => view.getFloat32(at, true),
    write: (view, at, value) => view.setFloat32(at, Number(value), true),
    holds: isNumber,
  },
  uint64: wide(
    0n,
    (view, at) => view.getBigUint64(at, true),
    (view, at, value) => view.setBigUint64(at, value, true),
  ),
  int64: wide(
    -(2n ** 63n),
    (view, at) => view.getBigInt64(at, true),
    (view, at, value) => view.setBigInt64(at, value, true),
  ),
  float64: {
    bytes: 8,
    read: (view, at) => view.getFloat64(at, true),
    write: (view, at, value) => view.setFloat64(at, Number(value), true),
    holds: isNumber,
  },
};

/** The type of a tensor's elements in a file. */
export interface TensorType {
  /** GGML's name. */
  readonly name: string;
  /** Values per block, and bytes per block. */
  readonly values: number;
  readonly bytes: number;
  /** How it is loaded: as a plain tensor or a quantized one; null if it is not supported. */
  readonly as: { readonly dtype: DType } | { readonly format: GgmlFormat } | null;
}

const plain: Readonly<Record<number, readonly [name: string, bytes: number, dtype: DType | null]>> = {
  0: ["f32", 4, "float32"],
  1: ["f16", 2, "float16"],
  24: ["i8", 1, "int8"],
  25: ["i16", 2, null],
  26: ["i32", 4, "int32"],
  27: ["i64", 8, "int64"],
  28: ["f64", 8, "float64"],
  30: ["bf16", 2, "bfloat16"],
};

/** Block types that files may have but are not supported. */
const foreign: Readonly<Record<number, readonly [name: string, values: number, bytes: number]>> = {
  9: ["q8_1", 32, 40],
  15: ["q8_K", 256, 292],
  16: ["iq2_xxs", 256, 66],
  17: ["iq2_xs", 256, 74],
  18: ["iq3_xxs", 256, 98],
  19: ["iq1_s", 256, 50],
  21: ["iq3_s", 256, 110],
  22: ["iq2_s", 256, 82],
  23: ["iq4_xs", 256, 136],
  29: ["iq1_m", 256, 56],
  34: ["tq1_0", 256, 54],
  35: ["tq2_0", 256, 66],
  40: ["nvfp4", 64, 36],
  41: ["q1_0", 128, 18],
};

const formats = entriesOf(blockFormats);

/** The types of tensors by number. */
export const tensorTypes: ReadonlyMap<number, TensorType> = new Map<number, TensorType>([
  ...formats.map(([name, { type, values, bytes }]): [number, TensorType] => [
    type,
    { name, values, bytes, as: { format: name } },
  ]),
  ...Object.entries(foreign).map(([type, [name, values, bytes]]): [number, TensorType] => [
    Number(type),
    { name, values, bytes, as: null },
  ]),
  // These entries must come last: f16 and bf16 are also block formats, but plain tensors in a file.
  ...Object.entries(plain).map(([type, [name, bytes, dtype]]): [number, TensorType] => [
    Number(type),
    { name, values: 1, bytes, as: dtype && { dtype } },
  ]),
]);

const numbersByDType = new Map(Object.entries(plain).map(([type, [, , dtype]]) => [dtype, Number(type)]));

/** Returns the type number of a dtype; undefined if files have no such tensors. */
export const typeOfDType = (dtype: DType): number | undefined => numbersByDType.get(dtype);

/** The dtypes of plain tensors in files, for messages. */
export const plainDTypes: string = [...numbersByDType.keys()].filter((dtype) => dtype !== null).join(", ");

export const MAGIC = "GGUF";
export const ALIGNMENT_KEY = "general.alignment";
export const DEFAULT_ALIGNMENT = 32;
