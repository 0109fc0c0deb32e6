/**
 * A safetensors file: 8 bytes with the header's length (little-endian), the header in JSON, then the tensors' bytes, one after the other. The header
 * has for each tensor its `dtype`, `shape` and `data_offsets` (begin and end, counted from the end of the header), and under `__metadata__`
 * texts by name. Its rules are checked as the reference implementation checks them, and a repeated key too.
 *
 * @see https://github.com/huggingface/safetensors#format
 */
import { FileFormatError } from "../../core/errors.ts";
import type { Shape } from "../../tensor/shape.ts";
import { duplicateKey, isJsonObject, type Json } from "../json.ts";
import { fileDType } from "./dtypes.ts";

/** What a file says of one tensor. */
export interface TensorEntry {
  readonly name: string;
  /** As the format names it, such as `"F32"`. */
  readonly dtype: string;
  readonly shape: Shape;
  /** Of its first byte, counted from where the header ends. */
  readonly begin: number;
  readonly byteLength: number;
}

export interface Header {
  /** Where the header ends in the file. */
  readonly end: number;
  readonly metadata: Readonly<Record<string, string>>;
  /** In the order of their bytes. */
  readonly tensors: ReadonlyMap<string, TensorEntry>;
}

const LENGTH_BYTES = 8;
/** Of the reference implementation, against files that only mean to fill the memory. */
export const MOST_HEADER_BYTES = 100_000_000;
export const METADATA_KEY = "__metadata__";

/** Reads `length` bytes of a file from a position on. */
export type ReadBytes = (position: number, length: number) => Uint8Array;

type Fail = (code: string, message: string, tensor?: string) => FileFormatError;

/** Reads and checks the header of a file of so many bytes. @throws {FileFormatError} */
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
      `it has ${fileBytes} bytes; a safetensors file begins with 8 that say how long its header is`,
    );
  const bytes = read(0, LENGTH_BYTES);
  const length = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true);
  if (length > MOST_HEADER_BYTES)
    throw fail(
      "headerTooLong",
      `its header would have ${length} bytes, at most ${MOST_HEADER_BYTES} are allowed; is it a safetensors file?`,
    );
  if (LENGTH_BYTES + Number(length) > fileBytes)
    throw fail("truncated", `its header should have ${length} bytes, the whole file has ${fileBytes}`);
  return Number(length);
}

function parse(bytes: Uint8Array, fail: Fail): { readonly [key: string]: Json } {
  const text = decode(bytes, fail);
  if (!text.startsWith("{"))
    throw fail("invalidHeader", `its header should begin with "{", it begins with ${JSON.stringify(text.slice(0, 8))}`);
  let json: Json;
  try {
    json = JSON.parse(text) as Json;
  } catch (cause) {
    throw fail("invalidHeader", `its header is no JSON: ${(cause as Error).message}`);
  }
  const twice = duplicateKey(text);
  if (twice !== undefined) throw fail("duplicateKey", `its header has the key ${JSON.stringify(twice)} twice`);
  return json as { readonly [key: string]: Json };
}

function decode(bytes: Uint8Array, fail: Fail): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw fail("invalidHeader", "its header is no UTF-8");
  }
}

function checkMetadata(json: Json, fail: Fail): Readonly<Record<string, string>> {
  if (isJsonObject(json)) {
    const other = Object.entries(json).find(([, value]) => typeof value !== "string");
    if (other === undefined) return json as Readonly<Record<string, string>>;
    throw fail("invalidHeader", `${METADATA_KEY} has texts only, ${JSON.stringify(other[0])} is none`);
  }
  throw fail("invalidHeader", `${METADATA_KEY} is an object of texts, ${brief(json)} came`);
}

function readEntry(name: string, json: Json, fail: Fail): TensorEntry {
  if (!isJsonObject(json)) throw fail("invalidEntry", `an object is wanted, ${brief(json)} came`, name);
  const { dtype, shape, data_offsets: offsets } = json;
  if (typeof dtype !== "string") throw fail("invalidEntry", `dtype is a text, ${brief(dtype)} came`, name);
  if (!isCounts(shape)) throw fail("invalidEntry", `shape is a list of whole numbers, ${brief(shape)} came`, name);
  if (!isCounts(offsets) || offsets.length !== 2 || offsets[0]! > offsets[1]!)
    throw fail("invalidOffsets", `data_offsets are a begin and an end after it, ${brief(offsets)} came`, name);
  const [begin, end] = offsets as readonly [number, number];
  checkSize(name, dtype, shape, end - begin, fail);
  return { name, dtype, shape, begin, byteLength: end - begin };
}

const isCounts = (json: Json | undefined): json is readonly number[] =>
  Array.isArray(json) && json.every((item) => Number.isSafeInteger(item) && item >= 0);

const brief = (json: Json | undefined): string => (JSON.stringify(json) ?? "nothing").slice(0, 60);

/** A type that is newer than this code has a size that nobody here knows. */
function checkSize(name: string, dtype: string, shape: Shape, byteLength: number, fail: Fail): void {
  const bits = shape.reduce((product, size) => product * BigInt(size), BigInt(fileDType(dtype)?.bits ?? 0));
  if (fileDType(dtype) === undefined) return;
  if (bits % 8n !== 0n)
    throw fail("misaligned", `${dtype}[${shape.join(", ")}] takes ${bits} bits, which are no whole bytes`, name);
  if (bits / 8n !== BigInt(byteLength))
    throw fail(
      "sizeDiffers",
      `${dtype}[${shape.join(", ")}] takes ${bits / 8n} bytes, its data_offsets hold ${byteLength}`,
      name,
    );
}

/** Every byte after the header is one tensor's: nothing overlaps, nothing hides between. */
function checkCover(entries: readonly TensorEntry[], dataBytes: number, fail: Fail): void {
  let end = 0;
  for (const { name, begin, byteLength } of entries) {
    if (begin !== end) {
      const what = begin < end ? "overlaps with the tensor before it" : "leaves a hole before it";
      throw fail("invalidOffsets", `it begins at byte ${begin} and ${what}, which ends at byte ${end}`, name);
    }
    end += byteLength;
    if (end > dataBytes)
      throw fail(
        "truncated",
        `it ends at byte ${end} after the header, and there are ${dataBytes}: is the file cut off?`,
        name,
      );
  }
  if (end !== dataBytes)
    throw fail("trailingBytes", `its tensors take ${end} bytes after the header, and there are ${dataBytes}`);
}

/** The bytes before the tensors': the length, and the header with spaces at its end, so that the tensors begin at a multiple of 8. */
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

/** Of a JSON object, which as a JavaScript object would have keys such as "0" before all others. */
const member = (key: string, value: unknown): string => `${JSON.stringify(key)}:${JSON.stringify(value)}`;
