import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { loopNest, quadLoop } from "../../backend/metal/loop.ts";

export const copyMetal: MetalImplementation<undefined> = {
  unsupported: noFloat64,
  run({ inputs: [input], outputs: [output] }) {
    const { grid, threadgroup, loop, quads } = quadLoop(output!, [input!]);
    return launch({
      file: "elementwise/copy.metal",
      name: `copy_${metalTypeOf(input!.dtype)}_${metalTypeOf(output!.dtype)}`,
      constants: [quads],
      operands: [reads(input!), writes(output!)],
      parameters: loopNest.bytes(loop),
      grid,
      threadgroup,
    });
  },
};
