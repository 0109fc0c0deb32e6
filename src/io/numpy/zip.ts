/**
 * The list at the end of a zip archive: names, sizes and sums of checks, which the library that inflates does not
 * compare.
 *
 * Source: PKWARE, ".ZIP File Format Specification" 6.3.10, sections 4.3.12 and 4.3.16.
 */
import type { Fail } from "./header.ts";

/** A file in an archive. */
export interface Entry {
  readonly name: string;
  /** Of its bytes when they are inflated. */
  readonly size: number;
  readonly crc: number;
}

const END = 0x06054b50;
const FILE = 0x02014b50;
const [END_BYTES, FILE_BYTES] = [22, 46];
/** A comment behind the end has at most so many bytes. */
const MOST_COMMENT = 65_535;
/** Deflated bytes become at most so many times as many: 258 of 2 bits. */
const MOST_GROWTH = 1032;

/** The .npy files in an archive. @throws {FileFormatError} */
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
      throw fail("badArchive", `expected ${count} files in the list of the archive, got ${index}`);
    entries.push(entryAt(bytes, view, at, length, fail));
    at += FILE_BYTES + length + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
  }
  const twice = entries.find(({ name }, index) => entries.findIndex((own) => own.name === name) !== index);
  if (twice) throw fail("badArchive", `expected each array once, got ${twice.name} twice`);
  return entries;
}

/** Where the end of the list is, which is at the end of the archive but for a comment. */
function endOf(view: DataView, fail: Fail): number {
  const last = view.byteLength - END_BYTES;
  for (let at = last; at >= Math.max(0, last - MOST_COMMENT); at--) if (view.getUint32(at, true) === END) return at;
  throw fail("badMagic", "expected a zip archive, got a file without a list of files at its end");
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
    throw fail("sizeDiffers", `expected ${name} to have ${size} bytes, which ${packed} cannot hold`);
  return { name, size, crc: view.getUint32(at + 16, true) };
}
