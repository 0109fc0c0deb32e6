/** Reads a 64-bit little-endian ELF file: whether it is complete, its interpreter, and its libraries. */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";

const headerSize = 64;
const segmentSize = 56;
/** Types of segments. */
const [LOAD, DYNAMIC, INTERPRETER] = [1, 2, 3];
/** Tags of dynamic entries. */
const [NEEDED, STRINGS] = [1n, 5n];

interface Segment {
  readonly type: number;
  /** Position in the file. */
  readonly start: number;
  readonly address: number;
  readonly size: number;
}

interface ElfFile {
  readonly descriptor: number;
  readonly size: number;
  /** The end of the table of segments. */
  readonly tableEnd: number;
  readonly segments: readonly Segment[];
}

/** Passes the segments of an ELF file to `body`; returns undefined for another file. */
function inElf<T>(path: string, body: (file: ElfFile) => T): T | undefined {
  const descriptor = openSync(path, "r");
  try {
    const { size } = fstatSync(descriptor);
    const header = readAt(descriptor, 0, headerSize);
    if (header.byteLength < headerSize || header.getUint32(0) !== 0x7f454c46) return undefined;
    const table = Number(header.getBigUint64(32, true));
    const count = header.getUint16(56, true);
    const bytes = readAt(descriptor, table, count * segmentSize);
    const segments = Array.from({ length: Math.floor(bytes.byteLength / segmentSize) }, (_, index) => {
      const at = index * segmentSize;
      const word = (offset: number) => Number(bytes.getBigUint64(at + offset, true));
      return { type: bytes.getUint32(at, true), start: word(8), address: word(16), size: word(32) };
    });
    return body({ descriptor, size, tableEnd: table + count * segmentSize, segments });
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Returns why a library is truncated; undefined if it is complete or not an ELF file. The system's loader maps a
 * truncated file without an error, and the process crashes when it accesses the missing part.
 */
export const truncation = (path: string): string | undefined =>
  inElf(path, ({ size, tableEnd, segments }) => {
    const needed = Math.max(tableEnd, ...segments.map((segment) => segment.start + segment.size));
    return needed > size ? `it is truncated: it has ${size} bytes, expected at least ${needed}` : undefined;
  });

/** Returns the path of the dynamic loader that a program names; undefined for other files. */
export const interpreterOf = (path: string): string | undefined =>
  inElf(path, ({ descriptor, segments }) => {
    const found = segments.find(({ type }) => type === INTERPRETER);
    return found && textOf(readAt(descriptor, found.start, found.size));
  });

/** Returns the libraries that a library or a program is linked against. */
export const librariesOf = (path: string): readonly string[] =>
  inElf(path, ({ descriptor, segments }) => {
    const dynamic = segments.find(({ type }) => type === DYNAMIC);
    if (!dynamic) return [];
    const bytes = readAt(descriptor, dynamic.start, dynamic.size);
    const entries = Array.from({ length: Math.floor(bytes.byteLength / 16) }, (_, index) => ({
      tag: bytes.getBigUint64(16 * index, true),
      value: Number(bytes.getBigUint64(16 * index + 8, true)),
    }));
    const address = entries.find(({ tag }) => tag === STRINGS)?.value ?? 0;
    const around = segments.find(
      (segment) => segment.type === LOAD && segment.address <= address && address < segment.address + segment.size,
    );
    if (!around) return [];
    const names = entries.filter(({ tag }) => tag === NEEDED);
    const start = around.start + address - around.address;
    return names.map(({ value }) => textOf(readAt(descriptor, start + value, MOST_NAME)));
  }) ?? [];

/** Maximum length of a library's name. */
const MOST_NAME = 256;

/** Reads text up to a zero byte. */
function textOf({ buffer, byteOffset, byteLength }: DataView): string {
  const bytes = new Uint8Array(buffer, byteOffset, byteLength);
  const end = bytes.indexOf(0);
  return new TextDecoder().decode(end < 0 ? bytes : bytes.subarray(0, end));
}

function readAt(descriptor: number, position: number, length: number): DataView {
  const bytes = new Uint8Array(length);
  const count = readSync(descriptor, bytes, 0, length, position);
  return new DataView(bytes.buffer, 0, count);
}
