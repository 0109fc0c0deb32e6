/** Masks for attention within chunks of a text. */
import { tensor } from "../../../ops/creation/tensor.ts";
import { logicalAnd } from "../../../ops/elementwise/logic.ts";
import type { Tensor } from "../../../tensor/tensor.ts";

/** The tokens that a mask covers. */
interface ChunkOptions {
  readonly chunk: number;
  /** The number of queries. The last query and the last key are the same token. */
  readonly queries: number;
  readonly keys: number;
  /** The position of the first query in each row, if rows have padding at their start. */
  readonly firsts: readonly number[] | undefined;
  /** A mask to combine with: bool, true = attends; broadcast to [batch, heads, queries, keys]. Default: none. */
  readonly mask: Tensor<"bool"> | undefined;
}

/**
 * Returns a mask bool [rows, 1, queries, keys] that lets a query attend only to keys of its chunk; position j is in
 * chunk ⌊j / chunk⌋. Returns the given mask if all keys are in the first chunk.
 */
export function chunkMask({ chunk, queries, keys, firsts, mask }: ChunkOptions): Tensor<"bool"> | undefined {
  if (keys <= chunk) return mask;
  const before = keys - queries;
  const starts = firsts ?? [before];
  const isSame = new Uint8Array(starts.length * queries * keys);
  for (const [row, start] of starts.entries()) {
    const padding = before - start;
    for (let query = 0; query < queries; query++) {
      const first = padding + Math.floor((start + query) / chunk) * chunk;
      const at = (row * queries + query) * keys;
      isSame.fill(1, at + Math.max(0, first), at + Math.max(0, Math.min(keys, first + chunk)));
    }
  }
  const within = tensor(isSame, { shape: [starts.length, 1, queries, keys], dtype: "bool" });
  return mask ? logicalAnd(mask, within) : within;
}
