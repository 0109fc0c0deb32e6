import type { Implementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, writes } from "../../backend/metal/launch.ts";
import type { Permutation } from "../../random/permutation.ts";
import { splitWords } from "../../random/philox.ts";

const THREADS = 256;
/** The grid is rows of so many threads: a coordinate has 32 bits, an element's number may need more. */
const ROW = 2 ** 30;

export const permutationMetal: Implementation<Permutation> = {
  run({ outputs: [output], attributes: { leftBits, rightBits, swaps, keys } }) {
    const count = output!.size;
    const words = Uint32Array.of(...splitWords(BigInt(count)), leftBits, rightBits, Number(swaps), ...keys);
    launch({
      file: "random/permutation.metal",
      name: `permutation_${metalTypeOf(output!.dtype)}`,
      operands: [writes(output!)],
      parameters: new Uint8Array(words.buffer),
      grid: [Math.min(count, ROW), Math.ceil(count / ROW)],
      threadgroup: [Math.min(count, THREADS)],
    });
  },
};
