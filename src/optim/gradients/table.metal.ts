/** `Gradients` of `kernels/optim/gradients.metal`: which threadgroup works on which gradient. */
import { CHUNK, chunksOf, MOST_GRADIENTS } from "./table.ts";

/** Threads of a threadgroup, which takes a chunk. */
export const THREADS = 256;
/** Bytes of what stands before the members, and of a member. */
const [HEAD_BYTES, MEMBER_BYTES] = [16, 16];

/** The parameters of a launch over tensors of so many elements, and how many threadgroups it has. */
export function gradientTable(counts: readonly number[]): { parameters: Uint8Array; threadgroups: number } {
  const bytes = new Uint8Array(HEAD_BYTES + MOST_GRADIENTS * MEMBER_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, counts.length, true);
  view.setUint32(4, CHUNK, true);
  let firstChunk = 0;
  for (const [index, count] of counts.entries()) {
    view.setBigUint64(HEAD_BYTES + index * MEMBER_BYTES, BigInt(count), true);
    view.setUint32(HEAD_BYTES + index * MEMBER_BYTES + 8, firstChunk, true);
    firstChunk += chunksOf(count);
  }
  return { parameters: bytes, threadgroups: firstChunk };
}
