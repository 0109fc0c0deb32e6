import { describeValue } from "../../core/describe.ts";
import { listed } from "../../core/kinds.ts";
import { dataTypes, type ScalarTypeName } from "./abi.ts";

/** A value for one scalar or vector of Metal Shading Language. */
export type ScalarValue = number | bigint | boolean | readonly (number | bigint | boolean)[];

/** A Metal data type: a scalar type and the number of lanes, such as `float` and 4 for `float4`. */
export interface DataType {
  readonly scalar: ScalarTypeName;
  readonly lanes: number;
}

/** Returns the type of an `MTLDataType` raw value; undefined for structs, matrices and other non-numeric types. */
export function dataTypeOf(raw: number): DataType | undefined {
  const found = (Object.entries(dataTypes) as [ScalarTypeName, number][]).find(
    ([, base]) => raw >= base && raw < base + 4,
  );
  return found && { scalar: found[0], lanes: raw - found[1] + 1 };
}

export function dataTypeName({ scalar, lanes }: DataType): string {
  return lanes === 1 ? scalar : `${scalar}${lanes}`;
}

/** Bytes of each scalar type, and the inclusive range of integers. */
const scalars: Record<ScalarTypeName, { bytes: number; range?: readonly [bigint | number, bigint | number] }> = {
  float: { bytes: 4 },
  half: { bytes: 2 },
  bfloat: { bytes: 2 },
  bool: { bytes: 1 },
  char: { bytes: 1, range: [-(2 ** 7), 2 ** 7 - 1] },
  uchar: { bytes: 1, range: [0, 2 ** 8 - 1] },
  short: { bytes: 2, range: [-(2 ** 15), 2 ** 15 - 1] },
  ushort: { bytes: 2, range: [0, 2 ** 16 - 1] },
  int: { bytes: 4, range: [-(2 ** 31), 2 ** 31 - 1] },
  uint: { bytes: 4, range: [0, 2 ** 32 - 1] },
  long: { bytes: 8, range: [-(2n ** 63n), 2n ** 63n - 1n] },
  ulong: { bytes: 8, range: [0n, 2n ** 64n - 1n] },
};

/** Returns the size of a type in bytes. A vector of three has the size of four (MSL table 2.3). */
export function byteLengthOf({ scalar, lanes }: DataType): number {
  return scalars[scalar].bytes * (lanes === 3 ? 4 : lanes);
}

/** Encodes a value in Metal's layout, or returns a sentence with the reason why it does not fit. */
export function encodeScalar(type: DataType, value: ScalarValue): Uint8Array | string {
  const items = typeof value === "object" ? listed(value) : [value];
  if (!items?.every(isScalar))
    return `expected a number, a bigint, a boolean or a list of them, got ${describeValue(value)}`;
  const name = dataTypeName(type);
  if (items.length !== type.lanes) return `expected ${type.lanes} value(s) for ${name}, got ${items.length}`;
  const view = new DataView(new ArrayBuffer(byteLengthOf(type)));
  for (const [lane, item] of items.entries()) {
    const problem = writeScalar(view, lane, type.scalar, item);
    if (problem) return problem;
  }
  return new Uint8Array(view.buffer);
}

const isScalar = (item: unknown): item is number | bigint | boolean =>
  typeof item === "number" || typeof item === "bigint" || typeof item === "boolean";

function writeScalar(
  view: DataView,
  lane: number,
  scalar: ScalarTypeName,
  item: number | bigint | boolean,
): string | undefined {
  const { bytes, range } = scalars[scalar];
  const at = lane * bytes;
  if (scalar === "bool") {
    if (typeof item !== "boolean") return `expected true or false for bool, got ${item}`;
    view.setUint8(at, item ? 1 : 0);
  } else if (typeof item === "boolean") {
    return `expected a number for ${scalar}, got ${item}`;
  } else if (range) {
    return writeInteger(view, at, scalar, item, range, bytes);
  } else {
    writeFloat(view, at, scalar, Number(item));
  }
  return undefined;
}

function writeInteger(
  view: DataView,
  at: number,
  scalar: string,
  item: number | bigint,
  range: readonly [bigint | number, bigint | number],
  bytes: number,
) {
  if (typeof item === "number" && !Number.isInteger(item)) return `expected an integer for ${scalar}, got ${item}`;
  if (item < range[0] || item > range[1]) return `expected ${range[0]} to ${range[1]} for ${scalar}, got ${item}`;
  if (bytes === 8) view.setBigInt64(at, BigInt(item), true);
  else if (bytes === 4) view.setInt32(at, Number(item), true);
  else if (bytes === 2) view.setInt16(at, Number(item), true);
  else view.setInt8(at, Number(item));
  return undefined;
}

function writeFloat(view: DataView, at: number, scalar: string, value: number): void {
  if (scalar === "float") view.setFloat32(at, value, true);
  else if (scalar === "half") view.setFloat16(at, value, true);
  else view.setUint16(at, bfloatBits(value), true);
}

/** Returns the bits of a bfloat16: the upper half of a float32, rounded to nearest, ties to even; NaN stays NaN. */
export function bfloatBits(value: number): number {
  const view = new DataView(new ArrayBuffer(4));
  view.setFloat32(0, value);
  const bits = view.getUint32(0);
  if (Number.isNaN(value)) return (bits >>> 16) | 0x40;
  return ((bits + 0x7fff + ((bits >>> 16) & 1)) / 0x10000) & 0xffff;
}
