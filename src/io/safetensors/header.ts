/**
 * The header of a safetensors file. The file starts with 8 bytes, the header's length (little-endian); then comes the
 * header in JSON, then the bytes of the tensors. For each tensor the header has `dtype`, `shape` and `data_offsets`
 * (begin and end, relative to the end of the header); `__metadata__` has strings by name. All rules of the reference
 * implementation are checked, and duplicate keys are rejected.
 *
 * @see https://github.com/huggingface/safetensors#format
 */
import { FileFormatError } from "../../core/errors.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { Shape } from "../../tensor/shape.ts";
import { brief, isJsonObject, type Json, parseJson } from "../json.ts";
import { fileDType } from "./dtypes.ts";

/** A tensor in the header. */
export interface TensorEntry {
  readonly name: string;
  /** The format's name, such as `"F32"`. */
  readonly dtype: string;
  readonly shape: Shape;
  /** The offset of the first byte, relative to the end of the header. */
  readonly begin: number;
  readonly byteLength: number;
}

export interface Header {
  /** The position in the file where the header ends. */
  readonly end: number;
  readonly metadata: Readonly<Record<string, string>>;
  /** The tensors, in the order of their bytes. */
  readonly tensors: ReadonlyMap<string, TensorEntry>;
}

const LENGTH_BYTES = 8;
/** The limit of the reference implementation, against files that would exhaust the memory. */
export const MAX_HEADER_BYTES = 100_000_000;
export const METADATA_KEY = "__metadata__";

/** Reads `length` bytes of a file from a position on. */
export type ReadBytes = (position: number, length: number) => Uint8Array;

type Fail = (code: string, message: string, tensor?: string) => FileFormatError;

/** Reads and checks the header of a file. @throws {FileFormatError} */
export function readHeader(operation: string, path: string, fileBytes: number, read: ReadBytes): Header {
  const fail: Fail = (code, message, tensor) => new FileFormatError(operation, code, path, message, tensor);
  const headerBytes = readLength(fileBytes, read, fail);
  const { [METADATA_KEY]: metadata = {}, ...tensors } = parse(read(LENGTH_BYTES, headerBytes), fail);
  const end = LENGTH_BYTES + headerBytes;
  const entries = Object.entries(tensors).map(([name, json]) => readEntry(name, json, fail));
  entries.sort((a, b) => a.begin - b.begin || a.byteLength - b.byteLength);
  checkCover(entries, fileBytes - end, fail);
  return { end, metadata: checkMetadata(metadata, fail), tensors: new Map(entries.map((each) => [each.name, each])) };
}

function readLength(fileBytes: number, read: ReadBytes, fail: Fail): number {
  if (fileBytes < LENGTH_BYTES)
    throw fail(
      "truncated",
      `expected at least ${LENGTH_BYTES} bytes, which hold the header's length, got ${fileBytes}`,
    );
  const bytes = read(0, LENGTH_BYTES);
  const length = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true);
  if (length > MAX_HEADER_BYTES)
    throw fail(
      "headerTooLong",
      `expected a header of at most ${MAX_HEADER_BYTES} bytes, got ${length}; is it a safetensors file?`,
    );
  if (LENGTH_BYTES + Number(length) > fileBytes)
    throw fail("truncated", `expected a header of ${length} bytes, got a file of ${fileBytes}`);
  return Number(length);
}

function parse(bytes: Uint8Array, fail: Fail): { readonly [key: string]: Json } {
  const text = decode(bytes, fail);
  if (!text.startsWith("{"))
    throw fail("invalidHeader", `expected the header to start with "{", got ${JSON.stringify(text.slice(0, 8))}`);
  const json = parseJson(text, (problem, message) => {
    if (problem === "duplicateKey") return fail(problem, `the header has ${message}`);
    const expected = problem === "tooDeep" ? "to hold only tensors and metadata, got a value" : "to be JSON:";
    return fail("invalidHeader", `expected the header ${expected} ${message}`);
  });
  return json as { readonly [key: string]: Json };
}

function decode(bytes: Uint8Array, fail: Fail): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw fail("invalidHeader", "expected the header to be UTF-8");
  }
}

function checkMetadata(json: Json, fail: Fail): Readonly<Record<string, string>> {
  if (json === null) return {}; // MLX writes null for no metadata
  if (isJsonObject(json)) {
    const other = Object.entries(json).find(([, value]) => typeof value !== "string");
    if (other === undefined) return json as Readonly<Record<string, string>>;
    throw fail(
      "invalidHeader",
      `expected ${METADATA_KEY} to have only strings, got another value for ${brief(other[0])}`,
    );
  }
  throw fail("invalidHeader", `expected ${METADATA_KEY} to be an object of strings, got ${brief(json)}`);
}

function readEntry(name: string, json: Json, fail: Fail): TensorEntry {
  if (!isJsonObject(json)) throw fail("invalidEntry", `expected an object, got ${brief(json)}`, name);
  const { dtype, shape, data_offsets: offsets } = json;
  if (typeof dtype !== "string") throw fail("invalidEntry", `expected dtype to be a string, got ${brief(dtype)}`, name);
  if (!isCounts(shape))
    throw fail("invalidEntry", `expected shape to be a list of whole numbers, got ${brief(shape)}`, name);
  if (!isCounts(offsets) || offsets.length !== 2 || offsets[0] > offsets[1])
    throw fail("invalidOffsets", `expected data_offsets to be [begin, end] in order, got ${brief(offsets)}`, name);
  const [begin, end] = tupleOf(offsets, 2);
  checkSize(name, dtype, shape, end - begin, fail);
  return { name, dtype, shape, begin, byteLength: end - begin };
}

const isCounts = (json: Json | undefined): json is readonly number[] =>
  Array.isArray(json) && json.every((item) => Number.isSafeInteger(item) && item >= 0);

/** Checks the size of a tensor. The size of an unknown, newer dtype is not checked. */
function checkSize(name: string, dtype: string, shape: Shape, byteLength: number, fail: Fail): void {
  const bitsPerElement = fileDType(dtype)?.bits;
  if (bitsPerElement === undefined) return;
  const bits = product(shape, BigInt(bitsPerElement));
  if (bits >= MAX_BITS)
    throw fail("sizeDiffers", `its shape ${brief(shape)} has more elements than a file can hold`, name);
  if (bits % 8n !== 0n)
    throw fail("misaligned", `${dtype}${brief(shape)} takes ${bits} bits, which is not a multiple of 8`, name);
  if (bits / 8n !== BigInt(byteLength))
    throw fail(
      "sizeDiffers",
      `expected data_offsets to span ${bits / 8n} bytes for ${dtype}${brief(shape)}, got ${byteLength}`,
      name,
    );
}

const MAX_BITS = 2n ** 128n;

/** Multiplies sizes, up to {@link MAX_BITS}: the product of a million sizes would take minutes. */
function product(shape: Shape, factor: bigint): bigint {
  let result = factor;
  for (const size of shape) {
    result *= BigInt(size);
    if (result >= MAX_BITS) return result;
  }
  return result;
}

/** Every byte after the header must belong to exactly one tensor: no overlaps, no gaps. */
function checkCover(entries: readonly TensorEntry[], dataBytes: number, fail: Fail): void {
  let end = 0;
  for (const { name, begin, byteLength } of entries) {
    if (begin !== end) {
      const what = begin < end ? "overlaps the previous tensor" : "leaves a gap after the previous tensor";
      throw fail("invalidOffsets", `it starts at byte ${begin} and ${what}, which ends at byte ${end}`, name);
    }
    end += byteLength;
    if (end > dataBytes)
      throw fail(
        "truncated",
        `it ends at byte ${end} after the header, but the file has only ${dataBytes} there: is it truncated?`,
        name,
      );
  }
  if (end !== dataBytes)
    throw fail("trailingBytes", `expected ${end} bytes of tensors after the header, got ${dataBytes}`);
}

/** Encodes the length and the header, padded with spaces so that the tensors start at a multiple of 8. */
export function encodeHeader(metadata: Readonly<Record<string, string>>, entries: readonly TensorEntry[]): Buffer {
  const rows = entries.map(({ name, dtype, shape, begin, byteLength }) =>
    member(name, { dtype, shape, data_offsets: [begin, begin + byteLength] }),
  );
  const hasMetadata = Object.keys(metadata).length > 0;
  const text = Buffer.from(`{${[...(hasMetadata ? [member(METADATA_KEY, metadata)] : []), ...rows].join(",")}}`);
  const bytes = Buffer.alloc(LENGTH_BYTES + Math.ceil(text.byteLength / 8) * 8, " ");
  bytes.writeBigUInt64LE(BigInt(bytes.byteLength - LENGTH_BYTES));
  bytes.set(text, LENGTH_BYTES);
  return bytes;
}

/** A member of a JSON object, formatted here because JavaScript objects order keys such as "0" before all others. */
const member = (key: string, value: unknown): string => `${JSON.stringify(key)}:${JSON.stringify(value)}`;
