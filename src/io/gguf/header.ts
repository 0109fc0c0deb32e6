/**
 * The header of a GGUF file: magic, version, counts, metadata, and name, shape, type and offset of each tensor. Files
 * that the `gguf` package or the format's specification rejects are rejected.
 */

import { numberIn } from "../../core/values.ts";
import { MAX_RANK, type Shape } from "../../tensor/shape.ts";
import { brief } from "../json.ts";
import type { TensorFile } from "../tensor_file.ts";
import { Cursor, type Fail } from "./cursor.ts";
import {
  ALIGNMENT_KEY,
  DEFAULT_ALIGNMENT,
  type GgufScalar,
  type GgufType,
  type GgufValue,
  MAGIC,
  numberLayouts,
  type TensorType,
  tensorTypes,
  valueTypes,
} from "./types.ts";

/** A tensor in the header. */
export interface GgufEntry {
  readonly name: string;
  /** The row-major shape, in the reverse order of the file. */
  readonly shape: Shape;
  readonly type: TensorType;
  /** The position of the first byte in the file. */
  readonly position: number;
  readonly byteLength: number;
}

export interface GgufHeader {
  readonly version: number;
  readonly alignment: number;
  readonly metadata: Readonly<Record<string, GgufValue>>;
  /** The tensors, in the order of the file. */
  readonly tensors: ReadonlyMap<string, GgufEntry>;
}

/** The limit of the format's specification for a key or a name. */
const MAX_NAME_BYTES = 65_535;
/** The fewest bytes of a metadata entry: an empty key, its type, and a value of one byte. */
const LEAST_FIELD_BYTES = 13;
/** The fewest bytes of a tensor's description: an empty name, no axes, a type and an offset. */
const LEAST_TENSOR_BYTES = 24;
/** The limit of nested arrays. */
const MAX_DEPTH = 16;

/** Reads and checks a header. @throws {FileFormatError} */
export function readHeader(file: TensorFile, fail: Fail): GgufHeader {
  const cursor = new Cursor(file, fail);
  const version = readVersion(cursor);
  const tensorCount = cursor.count("tensors", LEAST_TENSOR_BYTES);
  const fieldCount = cursor.count("metadata values", LEAST_FIELD_BYTES);
  const metadata = readMetadata(cursor, fieldCount);
  const alignment = alignmentOf(metadata, fail);
  const infos = Array.from({ length: tensorCount }, () => readInfo(cursor));
  const start = Math.ceil(cursor.position / alignment) * alignment;
  const tensors = placed(infos, start, alignment, file.byteLength, fail);
  return { version, alignment, metadata, tensors };
}

function readVersion(cursor: Cursor): number {
  const magic = Buffer.from(cursor.take(MAGIC.length, "the magic").buffer as ArrayBuffer, 0, MAGIC.length);
  if (magic.toString("latin1") !== MAGIC)
    throw cursor.fail("notGguf", `expected the file to start with "${MAGIC}", got ${brief(magic.toString("latin1"))}`);
  const version = cursor.uint32("the version");
  if (version === 2 || version === 3) return version;
  const hint = version > 0xffff && version % 65_536 === 0 ? "; it is big-endian, which is not supported" : "";
  throw cursor.fail("unknownVersion", `expected version 2 or 3, got ${version}${hint}`);
}

function readMetadata(cursor: Cursor, count: number): Readonly<Record<string, GgufValue>> {
  const fields = new Map<string, GgufValue>();
  for (let at = 0; at < count; at++) {
    const key = cursor.text("a key", MAX_NAME_BYTES);
    if (fields.has(key)) throw cursor.fail("duplicateKey", `it has the key ${brief(key)} more than once`);
    fields.set(key, readValue(cursor, key, typeAt(cursor, key), 0));
  }
  return Object.fromEntries(fields);
}

function typeAt(cursor: Cursor, key: string): GgufType {
  const type = cursor.uint32(`the type of ${brief(key)}`);
  const name = valueTypes[type];
  if (name !== undefined) return name;
  throw cursor.fail("unknownType", `expected a type of 0 to ${valueTypes.length - 1} for ${brief(key)}, got ${type}`);
}

function readValue(cursor: Cursor, key: string, type: GgufType, depth: number): GgufValue {
  if (type !== "array") return { type, value: readScalar(cursor, key, type) };
  if (depth === MAX_DEPTH)
    throw cursor.fail("tooDeep", `expected ${brief(key)} to nest at most ${MAX_DEPTH} arrays, got more`);
  const of = typeAt(cursor, key);
  if (of === "array") {
    const count = cursor.count(`arrays in ${brief(key)}`, 12);
    return { type, of, value: Array.from({ length: count }, () => readValue(cursor, key, of, depth + 1)) };
  }
  return { type, of, value: readScalars(cursor, key, of) };
}

type ScalarType = Exclude<GgufType, "array">;

function readScalar(cursor: Cursor, key: string, type: ScalarType): GgufScalar {
  if (type === "string") return cursor.text(`the value of ${brief(key)}`);
  if (type === "bool") return truth(cursor, key, cursor.take(1, brief(key)).getUint8(0));
  const { bytes, read } = numberLayouts[type];
  return read(cursor.take(bytes, brief(key)), 0);
}

function truth(cursor: Cursor, key: string, byte: number): boolean {
  if (byte <= 1) return byte === 1;
  throw cursor.fail("invalidBool", `expected ${brief(key)} to be 0 or 1, got ${byte}`);
}

function readScalars(cursor: Cursor, key: string, of: ScalarType): GgufScalar[] {
  const what = `values in ${brief(key)}`;
  if (of === "string") {
    const count = cursor.count(what, 8);
    const each = `a value of ${brief(key)}`;
    return Array.from({ length: count }, () => cursor.text(each));
  }
  const layout = of === "bool" ? undefined : numberLayouts[of];
  const bytes = layout?.bytes ?? 1;
  const count = cursor.count(what, bytes);
  const view = cursor.take(count * bytes, what);
  return Array.from({ length: count }, (_, at) =>
    layout ? layout.read(view, at * bytes) : truth(cursor, key, view.getUint8(at)),
  );
}

function alignmentOf(metadata: Readonly<Record<string, GgufValue>>, fail: Fail): number {
  if (!Object.hasOwn(metadata, ALIGNMENT_KEY)) return DEFAULT_ALIGNMENT;
  const { type, value } = metadata[ALIGNMENT_KEY];
  if (type !== "uint32") throw fail("invalidAlignment", `expected ${ALIGNMENT_KEY} of type uint32, got ${type}`);
  const alignment = numberIn(value);
  if (alignment > 0 && Number.isInteger(Math.log2(alignment))) return alignment;
  throw fail("invalidAlignment", `expected ${ALIGNMENT_KEY} to be a power of two, got ${alignment}`);
}

interface Info {
  readonly name: string;
  readonly sizes: readonly bigint[];
  readonly type: number;
  readonly offset: bigint;
}

function readInfo(cursor: Cursor): Info {
  const name = cursor.text("the name of a tensor", MAX_NAME_BYTES);
  const rank = cursor.uint32(`the number of axes of ${brief(name)}`);
  if (rank > MAX_RANK) throw cursor.fail("tooManyAxes", `expected at most ${MAX_RANK} axes, got ${rank}`, name);
  const sizes = Array.from({ length: rank }, () => cursor.uint64(`the sizes of ${brief(name)}`));
  const type = cursor.uint32(`the type of ${brief(name)}`);
  return { name, sizes, type, offset: cursor.uint64(`the offset of ${brief(name)}`) };
}

/** Checks sizes and offsets: each tensor must lie within the file, and must not overlap another. */
function placed(
  infos: readonly Info[],
  start: number,
  alignment: number,
  fileBytes: number,
  fail: Fail,
): Map<string, GgufEntry> {
  const tensors = new Map<string, GgufEntry>();
  for (const info of infos) {
    const { name } = info;
    if (tensors.has(name)) throw fail("duplicateTensor", "the file has it more than once", name);
    tensors.set(name, place(info, start, alignment, fileBytes, fail));
  }
  const inOrder = [...tensors.values()].filter(({ byteLength }) => byteLength > 0);
  inOrder.sort((a, b) => a.position - b.position);
  for (const [at, { name, position }] of inOrder.entries()) {
    const before = inOrder[at - 1];
    if (before !== undefined && before.position + before.byteLength > position)
      throw fail("invalidOffsets", `it starts at byte ${position} and overlaps ${brief(before.name)}`, name);
  }
  return tensors;
}

function place(info: Info, start: number, alignment: number, fileBytes: number, fail: Fail): GgufEntry {
  const { name, sizes, offset } = info;
  const type = tensorTypes.get(info.type);
  if (type === undefined) throw fail("unknownTensorType", `the tensor type ${info.type} is unknown`, name);
  const byteLength = bytesIn(sizes, type, fail, name);
  if (offset % BigInt(alignment) !== 0n)
    throw fail("misaligned", `expected an offset that is a multiple of ${alignment}, got ${offset}`, name);
  const end = BigInt(start) + offset + byteLength;
  if (byteLength > 0n && end > fileBytes)
    throw fail("truncated", `it ends at byte ${end}, but the file has only ${fileBytes} bytes: is it truncated?`, name);
  const position = byteLength > 0n ? start + Number(offset) : start;
  return { name, shape: sizes.map(Number).reverse(), type, position, byteLength: Number(byteLength) };
}

/** The exact number of bytes of a tensor. */
function bytesIn(
  sizes: readonly bigint[],
  { name: type, values, bytes }: TensorType,
  fail: Fail,
  name: string,
): bigint {
  const row = sizes[0] ?? 1n;
  if (row % BigInt(values) !== 0n)
    throw fail("partOfBlock", `expected rows whose length is a multiple of ${values} for ${type}, got ${row}`, name);
  const most = BigInt(Number.MAX_SAFE_INTEGER);
  const large = sizes.find((size) => size > most);
  const count = sizes.reduce((product, size) => product * size, 1n);
  if (large !== undefined || count > most)
    throw fail("tooLarge", `expected at most 2^53 values, got ${brief(sizes.map(String).join(" x "))}`, name);
  return (count / BigInt(values)) * BigInt(bytes);
}
