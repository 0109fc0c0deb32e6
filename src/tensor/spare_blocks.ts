/**
 * A cache of released JavaScript blocks by size. JavaScript clears new blocks, which for 16 KB takes as long as an
 * addition of their elements.
 */

/** Cached sizes. JavaScript allocates smaller blocks on its heap in a few nanoseconds. */
const SMALLEST = 1 << 10;
const LARGEST = (1 << 16) - 1; // the cpu backend's allocator provides larger ones

/** Maximum bytes of all cached blocks. */
const MOST_BYTES = 1 << 22;

const blocks = new Map<number, Uint8Array<ArrayBuffer>[]>();
let keptBytes = 0;
let poison: number | undefined;

/** @internal Returns a cached block of this size with undefined contents; undefined if there is none. */
export function takeSpareBlock(byteLength: number): Uint8Array<ArrayBuffer> | undefined {
  if (byteLength < SMALLEST || byteLength > LARGEST) return undefined;
  const block = blocks.get(byteLength)?.pop();
  if (block === undefined || block.byteLength !== byteLength) return undefined; // the block's buffer was transferred
  keptBytes -= byteLength;
  return block;
}

/** @internal Caches an unused block whose buffer has no other views. */
export function keepSpareBlock(block: Uint8Array<ArrayBuffer>): void {
  const { byteLength } = block;
  if (byteLength < SMALLEST || byteLength > LARGEST) return;
  if (poison !== undefined) block.fill(poison);
  if (keptBytes + byteLength > MOST_BYTES) dropSpareBlocks(); // cached blocks may have sizes that are no longer used
  keptBytes += byteLength;
  const same = blocks.get(byteLength);
  if (same === undefined) blocks.set(byteLength, [block]);
  else same.push(block);
}

/** @internal Drops all cached blocks. */
export function dropSpareBlocks(): void {
  blocks.clear();
  keptBytes = 0;
}

/** @internal Returns the bytes of all cached blocks. */
export const spareBytes = (): number => keptBytes;

/** @internal For tests: fills released blocks with a byte, so that reads of released blocks are noticed. */
export function poisonSpareBlocks(byte: number | undefined): void {
  poison = byte;
}
