/**
 * The header of a .npy file: the magic, a version, the length of a text, and the text, a Python literal such as
 *
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
 *
 * Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
 */
import type { FileFormatError } from "../../core/errors.ts";
import type { DType } from "../../tensor/dtype.ts";
import { MAX_RANK } from "../../tensor/shape.ts";

/** Creates an error about a file. */
export type Fail = (code: string, message: string) => FileFormatError;

/** The contents of a header. */
export interface NpyHeader {
  readonly dtype: DType;
  /** Whether elements are big-endian. */
  readonly isBigEndian: boolean;
  /** Whether the array is column-major (Fortran order). */
  readonly isFortran: boolean;
  readonly shape: readonly number[];
  /** The position where the elements begin. */
  readonly start: number;
}

const MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59]; // \x93NUMPY
/** NumPy's limit of headers. */
const MOST_HEADER_BYTES = 10_000;

/** NumPy's types by kind and size. int16, uint16, uint64 and strings are not supported. */
const dtypes: Readonly<Record<string, DType>> = {
  f8: "float64",
  f4: "float32",
  f2: "float16",
  i8: "int64",
  i4: "int32",
  u4: "uint32",
  i1: "int8",
  u1: "uint8",
  b1: "bool",
  c8: "complex64",
  c16: "complex128",
};
const descriptions: Readonly<Partial<Record<DType, string>>> = {
  float64: "<f8",
  float32: "<f4",
  float16: "<f2",
  int64: "<i8",
  int32: "<i4",
  uint32: "<u4",
  int8: "|i1",
  uint8: "|u1",
  bool: "|b1",
  complex64: "<c8",
  complex128: "<c16",
};

/** Whether .npy files support a dtype. */
export const describes = (dtype: DType): boolean => descriptions[dtype] !== undefined;

/** The literal as NumPy writes it; spaces may be between any parts. */
const LITERAL = new RegExp(
  [
    String.raw`^\{\s*'descr'\s*:\s*'([^'\\]*)'\s*,`,
    String.raw`\s*'fortran_order'\s*:\s*(True|False)\s*,`,
    String.raw`\s*'shape'\s*:\s*\(([\d\s,]*)\)\s*(?:,\s*)?\}\s*$`,
  ].join(""),
);

/** Reads and checks a header. @throws {FileFormatError} */
export function parseHeader(bytes: Uint8Array, fail: Fail): NpyHeader {
  const { text, start } = textOf(bytes, fail);
  const match = LITERAL.exec(text);
  if (match === null) {
    const shown = JSON.stringify(text.slice(0, 200));
    throw fail("badHeader", `expected a header with descr, fortran_order and shape, got ${shown}`);
  }
  const [, description, order, sizes] = match as unknown as [string, string, string, string];
  const [, endianness, type] = /^([<>|=])([a-z]\d+)$/.exec(description) ?? [];
  const dtype = Object.hasOwn(dtypes, type ?? "") ? dtypes[type] : undefined;
  if (dtype === undefined)
    throw fail(
      "unsupportedType",
      `expected the type to be one of ${Object.keys(dtypes).join(", ")}, got ${description}`,
    );
  return { dtype, isBigEndian: endianness === ">", isFortran: order === "True", shape: shapeOf(sizes, fail), start };
}

function textOf(bytes: Uint8Array, fail: Fail): { readonly text: string; readonly start: number } {
  if (MAGIC.some((byte, at) => bytes[at] !== byte)) throw fail("badMagic", "expected the magic \\x93NUMPY");
  const version = bytes[6] ?? 0;
  if (version < 1 || version > 3) throw fail("unsupportedVersion", `expected version 1, 2 or 3, got ${version}`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = version === 1 ? 10 : 12;
  if (bytes.byteLength < start) throw fail("truncated", `expected at least ${start} bytes, got ${bytes.byteLength}`);
  const length = version === 1 ? view.getUint16(8, true) : view.getUint32(8, true);
  if (length > MOST_HEADER_BYTES)
    throw fail("headerTooLarge", `expected a header of at most ${MOST_HEADER_BYTES} bytes, got ${length}`);
  if (bytes.byteLength < start + length)
    throw fail("truncated", `expected a header of ${length} bytes, got ${bytes.byteLength - start}`);
  return { text: new TextDecoder("latin1").decode(bytes.subarray(start, start + length)), start: start + length };
}

/** Parses a tuple of sizes: `2, 3`, `2,`, or empty. */
function shapeOf(text: string, fail: Fail): number[] {
  const parts = text.split(",").map((part) => part.trim());
  if (parts.at(-1) === "") parts.pop();
  const shape = parts.map((part) => (/^\d+$/.test(part) ? Number(part) : Number.NaN));
  const isTuple = parts.length !== 1 || text.includes(",");
  if (!isTuple || shape.length > MAX_RANK || !shape.every(Number.isSafeInteger))
    throw fail("badShape", `expected a tuple of at most ${MAX_RANK} sizes, got (${text.slice(0, 200)})`);
  return shape;
}

/** Encodes the header as NumPy does, padded to a multiple of 64 bytes. */
export function encodeHeader(dtype: DType, shape: readonly number[]): Uint8Array {
  const sizes = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  const text = `{'descr': '${descriptions[dtype]}', 'fortran_order': False, 'shape': (${sizes}), }`;
  const padding = 64 - ((10 + text.length + 1) % 64);
  const whole = `${text}${" ".repeat(padding % 64)}\n`;
  const bytes = new Uint8Array(10 + whole.length);
  bytes.set([...MAGIC, 1, 0]);
  new DataView(bytes.buffer).setUint16(8, whole.length, true);
  bytes.set(new TextEncoder().encode(whole), 10);
  return bytes;
}
