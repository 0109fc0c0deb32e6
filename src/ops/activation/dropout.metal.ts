import type { Implementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { broadcastLoop } from "../../backend/metal/loop.ts";
import type { DropoutAttributes } from "./dropout.ts";

/** Elements of a thread: those that share a block of random words. */
const BLOCK = 4;
const THREADS = 256;

export const dropoutMetal: Implementation<DropoutAttributes> = {
  unsupported: noFloat64,
  run({ inputs: [x], outputs: [output], attributes: { key, counter, lastDropped, scale } }) {
    const blocks = Math.ceil(output!.size / BLOCK);
    const { parameters } = broadcastLoop(output!, [x!]);
    const words = Uint32Array.of(...key, ...counter, lastDropped, 0);
    new Float32Array(words.buffer).set([scale], words.length - 1);
    launch({
      file: "activation/dropout.metal",
      name: `dropout_${metalTypeOf(x!.dtype)}`,
      operands: [reads(x!), writes(output!)],
      parameters: Buffer.concat([parameters, new Uint8Array(words.buffer)]),
      grid: blocks,
      threadgroup: Math.min(blocks, THREADS),
    });
  },
};
