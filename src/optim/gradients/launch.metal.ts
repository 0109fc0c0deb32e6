import { chunksOf } from "../update.metal.ts";
import { CHUNK } from "./chunks.ts";
import { gradientParameters } from "./primitive.ts";

/** Threads per threadgroup; each threadgroup handles one chunk. */
const THREADS = 256;

/** Returns the part of a launch that depends only on the sizes of the gradients. */
export function launchOver(sizes: readonly number[]) {
  const { firstChunks, total } = chunksOf(sizes, CHUNK);
  const parameters = gradientParameters.bytes({ gradients: sizes.length, chunk: CHUNK, sizes, firstChunks });
  return { parameters, threadgroups: total, threadgroup: THREADS };
}
