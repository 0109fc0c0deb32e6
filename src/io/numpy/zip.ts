/**
 * Reads zip archives: the central directory at the end, and the files one by one, each limited to the size it states.
 *
 * Source: PKWARE, ".ZIP File Format Specification" 6.3.10, sections 4.3.12 and 4.3.16.
 */
import { zlib } from "../zlib.ts";
import type { Fail } from "./header.ts";

/** A file in an archive. */
export interface Entry {
  readonly name: string;
  /** The size of the file after inflating. */
  readonly size: number;
  readonly crc: number;
  /** The bytes in the archive. */
  readonly packed: Uint8Array;
  readonly isDeflated: boolean;
}

const END = 0x06054b50;
const FILE = 0x02014b50;
const LOCAL = 0x04034b50;
const [END_BYTES, FILE_BYTES, LOCAL_BYTES] = [22, 46, 30];
/** The maximum length of the comment at the end. */
const MOST_COMMENT = 65_535;
/** The maximum expansion of deflate: 258 bytes from 2 bits. */
const MOST_GROWTH = 1032;

/** Lists the .npy files in an archive. @throws {FileFormatError} */
export function entriesOf(bytes: Uint8Array, fail: Fail): Entry[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = endOf(view, fail);
  const [count, start] = [view.getUint16(end + 10, true), view.getUint32(end + 16, true)];
  if (count === 0xffff || start === 0xffffffff)
    throw fail("tooLarge", "expected an archive below 4 GB with fewer than 65,535 arrays");
  const entries: Entry[] = [];
  let at = start;
  for (let index = 0; index < count; index++) {
    const isEntry = at + FILE_BYTES <= end && view.getUint32(at, true) === FILE;
    const length = isEntry ? view.getUint16(at + 28, true) : 0;
    if (!isEntry || at + FILE_BYTES + length > end)
      throw fail("badArchive", `expected ${count} files in the central directory, got only ${index}`);
    entries.push(entryAt(bytes, view, at, length, fail));
    at += FILE_BYTES + length + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
  }
  checkApart(entries, bytes.byteOffset + start, fail);
  return entries;
}

/**
 * Checks that names are unique and files do not overlap: overlapping files could expand a small archive to many arrays.
 */
function checkApart(entries: readonly Entry[], listStart: number, fail: Fail): void {
  const names = new Set<string>();
  for (const { name } of entries) {
    if (names.has(name)) throw fail("badArchive", `expected arrays with different names, got ${name} twice`);
    names.add(name);
  }
  let end = 0;
  for (const { name, packed } of entries.toSorted((a, b) => a.packed.byteOffset - b.packed.byteOffset)) {
    const start = packed.byteOffset;
    if (start < end)
      throw fail("badArchive", `expected files that do not overlap in the archive, got ${name} inside another file`);
    end = start + packed.byteLength;
  }
  if (end > listStart)
    throw fail("badArchive", "expected all files to be before the central directory, got one that overlaps it");
}

/** The position of the end record, which is at the end of the archive, except for a comment. */
function endOf(view: DataView, fail: Fail): number {
  const last = view.byteLength - END_BYTES;
  for (let at = last; at >= Math.max(0, last - MOST_COMMENT); at--) if (view.getUint32(at, true) === END) return at;
  throw fail("badMagic", "expected a zip archive, got a file without a central directory at its end");
}

function entryAt(bytes: Uint8Array, view: DataView, at: number, length: number, fail: Fail): Entry {
  const name = new TextDecoder().decode(bytes.subarray(at + FILE_BYTES, at + FILE_BYTES + length));
  const [flags, method] = [view.getUint16(at + 8, true), view.getUint16(at + 10, true)];
  const [packed, size] = [view.getUint32(at + 20, true), view.getUint32(at + 24, true)];
  if (!name.endsWith(".npy"))
    throw fail("notAnArray", `expected .npy files in the archive, got ${JSON.stringify(name)}`);
  if ((flags & 1) !== 0) throw fail("encrypted", `expected ${name} not to be encrypted`);
  if (method !== 0 && method !== 8)
    throw fail("unsupportedMethod", `expected ${name} to be stored (0) or deflated (8), got method ${method}`);
  if (packed > bytes.byteLength || size > (method === 0 ? packed : packed * MOST_GROWTH))
    throw fail(
      "sizeDiffers",
      `${name} is listed with ${size} bytes, more than its ${packed} compressed bytes can expand to`,
    );
  const contents = packedAt(bytes, view, view.getUint32(at + 42, true), packed, name, fail);
  return { name, size, crc: view.getUint32(at + 16, true), packed: contents, isDeflated: method === 8 };
}

/** The packed bytes of an entry, which follow its local header. */
function packedAt(bytes: Uint8Array, view: DataView, at: number, size: number, name: string, fail: Fail): Uint8Array {
  if (at + LOCAL_BYTES > view.byteLength || view.getUint32(at, true) !== LOCAL)
    throw fail("badArchive", `expected ${name} at its position in the central directory, got other data there`);
  const start = at + LOCAL_BYTES + view.getUint16(at + 26, true) + view.getUint16(at + 28, true);
  if (start + size > view.byteLength) throw fail("badArchive", `expected ${size} bytes of ${name}, got fewer`);
  return bytes.subarray(start, start + size);
}

/** Unpacks a file, up to its stated size. @throws {FileFormatError} */
export function unpacked({ name, size, crc, packed, isDeflated }: Entry, fail: Fail): Uint8Array {
  const bytes = isDeflated ? inflated(packed, name, size, fail) : packed;
  if (bytes.byteLength !== size || Bun.hash.crc32(bytes) !== crc)
    throw fail("badChecksum", `expected the bytes of ${name} to match the checksum in the archive`);
  return bytes;
}

function inflated(packed: Uint8Array, name: string, size: number, fail: Fail): Uint8Array {
  try {
    return zlib().inflateRawSync(packed, { maxOutputLength: Math.max(1, size) });
  } catch (cause) {
    if ((cause as { code?: unknown }).code === "ERR_BUFFER_TOO_LARGE")
      throw fail("sizeDiffers", `expected ${name} to have ${size} bytes, got more`);
    throw fail("badArchive", `expected ${name} to be deflated bytes, but inflating failed with "${String(cause)}"`);
  }
}
