import { chunksOf } from "../update.metal.ts";
import { CHUNK } from "./chunks.ts";
import { gradientParameters } from "./primitive.ts";

/** Threads of a threadgroup, which takes a chunk. */
const THREADS = 256;

/** The part of a launch that depends on the sizes of the gradients alone. */
export function launchOver(sizes: readonly number[]) {
  const { firstChunks, total } = chunksOf(sizes, CHUNK);
  const parameters = gradientParameters.bytes({ gradients: sizes.length, chunk: CHUNK, sizes, firstChunks });
  return { parameters, threadgroups: total, threadgroup: THREADS };
}
