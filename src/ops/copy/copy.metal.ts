import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { loopNest, runLoop } from "../../backend/metal/loop.ts";

export const copyMetal: MetalImplementation<undefined> = {
  unsupported: noFloat64,
  run({ inputs: [input], outputs: [output] }) {
    const { grid, threadgroup, loop, runs } = runLoop(output!, [input!]);
    return launch({
      file: "elementwise/copy.metal",
      name: `copy_${metalTypeOf(input!.dtype)}_${metalTypeOf(output!.dtype)}`,
      constants: [runs],
      operands: [reads(input!), writes(output!)],
      parameters: loopNest.bytes(loop),
      grid,
      threadgroup,
    });
  },
};
