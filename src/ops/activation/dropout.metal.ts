import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { broadcastLoop } from "../../backend/metal/loop.ts";
import { type DropoutAttributes, dropoutParameters } from "./primitive.ts";

/** Elements of a thread: those that share a block of random words. */
const BLOCK = 4;
const THREADS = 256;

export const dropoutMetal: MetalImplementation<DropoutAttributes> = {
  unsupported: noFloat64,
  run({ inputs: [x], outputs: [out], attributes }) {
    const blocks = Math.ceil(out!.size / BLOCK);
    const { loop } = broadcastLoop(out!, [x!]);
    return launch({
      file: "activation/dropout.metal",
      name: `dropout_${metalTypeOf(x!.dtype)}`,
      operands: [reads(x!), writes(out!)],
      parameters: dropoutParameters.bytes({ loop, ...attributes }),
      grid: blocks,
      threadgroup: Math.min(blocks, THREADS),
    });
  },
};
