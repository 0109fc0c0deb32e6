/** Reading text files of any size, a block at a time. */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";

const BLOCK_BYTES = 2 ** 22;

/** A file's bytes, a block at a time. Each is the caller's. */
export function* blocksOf(path: string): Generator<Uint8Array> {
  const descriptor = openSync(path, "r");
  try {
    const { size } = fstatSync(descriptor);
    for (let at = 0; at < size; ) {
      const block = new Uint8Array(Math.min(BLOCK_BYTES, size - at));
      const came = readSync(descriptor, block, 0, block.byteLength, at);
      if (came === 0) return; // it was cut off meanwhile
      yield block.subarray(0, came);
      at += came;
    }
  } finally {
    closeSync(descriptor);
  }
}

/** A text without a place for a cut is cut anywhere from this size on. */
const MOST_BYTES = 2 ** 26;

/**
 * A file's text in parts that encode to the same tokens as the whole: each ends with a newline between two printable characters of ASCII, where
 * neither UTF-8 nor a word of a byte pair encoding goes on.
 */
export function* textParts(path: string): Generator<string> {
  const text = new TextDecoder();
  let rest: Uint8Array = new Uint8Array(0);
  for (const block of blocksOf(path)) {
    const bytes = rest.byteLength === 0 ? block : Buffer.concat([rest, block]);
    const cut = lastCut(bytes) || (bytes.byteLength > MOST_BYTES ? lastCharacter(bytes) : 0);
    if (cut > 0) yield text.decode(bytes.subarray(0, cut));
    rest = bytes.subarray(cut);
  }
  if (rest.byteLength > 0) yield text.decode(rest);
}

/** After the last newline with printable characters on both sides; 0 where there is none. */
function lastCut(bytes: Uint8Array): number {
  for (let at = bytes.byteLength - 2; at > 0; at--)
    if (bytes[at] === NEWLINE && isPrintable(bytes[at - 1]!) && isPrintable(bytes[at + 1]!)) return at + 1;
  return 0;
}

const NEWLINE = 0x0a;
const isPrintable = (byte: number): boolean => byte > 0x20 && byte < 0x7f;

/** Where the last character of UTF-8 begins. */
function lastCharacter(bytes: Uint8Array): number {
  let at = bytes.byteLength - 1;
  while (at > 0 && (bytes[at]! & 0xc0) === 0x80) at--;
  return at;
}
