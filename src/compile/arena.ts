/** Places intermediate results in one block of memory. Results with disjoint lifetimes share memory. */

/** A result with the indices of the first and the last call that access it. */
export interface Lifetime {
  readonly bytes: number;
  readonly first: number;
  readonly last: number;
}

/** Results are aligned to cache lines. */
const ALIGNMENT = 64;

const aligned = (bytes: number): number => Math.ceil(Math.max(bytes, 1) / ALIGNMENT) * ALIGNMENT;

/**
 * Returns an offset for each result, so that results with overlapping lifetimes do not overlap in memory, and the size
 * of the block. Greedy by size: the largest result first, each at the lowest free offset (Pisarchyk and Lee, "Efficient
 * memory management for deep neural net inference", 2020).
 */
export function placeInArena(results: readonly Lifetime[]): { offsets: number[]; bytes: number } {
  const offsets = new Array<number>(results.length).fill(0);
  const placed: { readonly at: number; readonly end: number; readonly result: Lifetime }[] = []; // sorted by offset
  let total = 0;
  const order = [...results.keys()].sort((a, b) => results[b].bytes - results[a].bytes || a - b);
  for (const index of order) {
    const result = results[index];
    const size = aligned(result.bytes);
    let at = 0;
    for (const other of placed) {
      if (other.result.last < result.first || other.result.first > result.last) continue;
      if (other.at >= at + size) break;
      at = Math.max(at, other.end);
    }
    offsets[index] = at;
    const before = placed.findIndex((other) => other.at > at);
    placed.splice(before < 0 ? placed.length : before, 0, { at, end: at + size, result });
    total = Math.max(total, at + size);
  }
  return { offsets, bytes: total };
}
