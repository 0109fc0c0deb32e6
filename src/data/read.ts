/** Reads text files of any size in blocks. */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";

const BLOCK_BYTES = 2 ** 22;

/** Reads a file's bytes in blocks. Each block is a new array. */
export function* blocksOf(path: string): Generator<Uint8Array> {
  const descriptor = openSync(path, "r");
  try {
    const { size } = fstatSync(descriptor);
    for (let position = 0; position < size; ) {
      const block = new Uint8Array(Math.min(BLOCK_BYTES, size - position));
      const count = readSync(descriptor, block, 0, block.byteLength, position);
      if (count === 0) return; // the file was truncated in the meantime
      yield block.subarray(0, count);
      position += count;
    }
  } finally {
    closeSync(descriptor);
  }
}

/** A text without a safe split point is split at any character from this size on. */
const MAX_PART_BYTES = 2 ** 26;

/**
 * Reads a file's text in parts that encode to the same tokens as the whole: each part ends with a newline between two
 * printable ASCII characters, which no UTF-8 sequence and no word of a byte pair encoding spans.
 */
export function* textParts(path: string): Generator<string> {
  const text = new TextDecoder();
  let tail: Uint8Array = new Uint8Array(0);
  for (const block of blocksOf(path)) {
    const bytes = tail.byteLength === 0 ? block : Buffer.concat([tail, block]);
    const split = lastSplitPoint(bytes) || (bytes.byteLength > MAX_PART_BYTES ? lastCharacter(bytes) : 0);
    if (split > 0) yield text.decode(bytes.subarray(0, split));
    tail = bytes.subarray(split);
  }
  if (tail.byteLength > 0) yield text.decode(tail);
}

/** The index after the last newline between printable characters; 0 if there is none. */
function lastSplitPoint(bytes: Uint8Array): number {
  for (let index = bytes.byteLength - 2; index > 0; index--)
    if (bytes[index] === NEWLINE && isPrintable(bytes[index - 1]) && isPrintable(bytes[index + 1])) return index + 1;
  return 0;
}

const NEWLINE = 0x0a;
const isPrintable = (byte: number): boolean => byte > 0x20 && byte < 0x7f;

/** The index of the first byte of the last UTF-8 character. */
function lastCharacter(bytes: Uint8Array): number {
  let index = bytes.byteLength - 1;
  while (index > 0 && (bytes[index] & 0xc0) === 0x80) index--;
  return index;
}
