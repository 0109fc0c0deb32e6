/**
 * Released blocks of JavaScript's, by their size, to be given out again. A fresh one is cleared first, which for 16 KB
 * takes as long as an addition of its elements.
 */

/** Sizes that are kept: JavaScript makes smaller blocks in its own heap, in a few nanoseconds. */
const SMALLEST = 1 << 10;
const LARGEST = (1 << 16) - 1; // the cpu backend has its own allocator for others

/** All blocks together have at most so many bytes. */
const MOST_BYTES = 1 << 22;

const blocks = new Map<number, Uint8Array<ArrayBuffer>[]>();
let keptBytes = 0;
let poison: number | undefined;

/** @internal A released block of so many bytes, with undefined contents; undefined where there is none. */
export function takeSpareBlock(byteLength: number): Uint8Array<ArrayBuffer> | undefined {
  if (byteLength < SMALLEST || byteLength > LARGEST) return undefined;
  const block = blocks.get(byteLength)?.pop();
  if (block === undefined || block.byteLength !== byteLength) return undefined; // its buffer was transferred
  keptBytes -= byteLength;
  return block;
}

/** @internal Keeps a block that nobody uses any more, and of whose buffer nobody has a view. */
export function keepSpareBlock(block: Uint8Array<ArrayBuffer>): void {
  const { byteLength } = block;
  if (byteLength < SMALLEST || byteLength > LARGEST) return;
  if (poison !== undefined) block.fill(poison);
  if (keptBytes + byteLength > MOST_BYTES) dropSpareBlocks(); // sizes of former work may be among them
  keptBytes += byteLength;
  const same = blocks.get(byteLength);
  if (same === undefined) blocks.set(byteLength, [block]);
  else same.push(block);
}

/** @internal Leaves all of them to the collector. */
export function dropSpareBlocks(): void {
  blocks.clear();
  keptBytes = 0;
}

/** @internal The bytes of all that are kept. */
export const spareBytes = (): number => keptBytes;

/** @internal For tests: what released blocks are filled with, so that whoever still reads one gets other numbers. */
export function poisonSpareBlocks(byte: number | undefined): void {
  poison = byte;
}
