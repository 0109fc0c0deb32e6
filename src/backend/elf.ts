import { closeSync, fstatSync, openSync, readSync } from "node:fs";

const headerSize = 64;
const segmentSize = 56;

/**
 * Returns why a 64-bit little-endian ELF library is truncated; undefined if it is complete or not an ELF file. The
 * system's loader maps a truncated file without an error, and the process crashes when it accesses the missing part.
 */
export function truncation(path: string): string | undefined {
  const descriptor = openSync(path, "r");
  try {
    const { size } = fstatSync(descriptor);
    const header = readAt(descriptor, 0, headerSize);
    if (header.byteLength < headerSize || header.getUint32(0) !== 0x7f454c46) return undefined;
    const table = Number(header.getBigUint64(32, true));
    const count = header.getUint16(56, true);
    const segments = readAt(descriptor, table, count * segmentSize);
    const ends = Array.from({ length: Math.floor(segments.byteLength / segmentSize) }, (_, index) => {
      const start = index * segmentSize;
      return Number(segments.getBigUint64(start + 8, true) + segments.getBigUint64(start + 32, true));
    });
    const needed = Math.max(table + count * segmentSize, ...ends);
    return needed > size ? `it is truncated: it has ${size} bytes, expected at least ${needed}` : undefined;
  } finally {
    closeSync(descriptor);
  }
}

function readAt(descriptor: number, position: number, length: number): DataView {
  const bytes = new Uint8Array(length);
  const count = readSync(descriptor, bytes, 0, length, position);
  return new DataView(bytes.buffer, 0, count);
}
