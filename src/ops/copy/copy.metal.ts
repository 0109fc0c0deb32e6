import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { loopBytes, runLoop } from "../../backend/metal/loop.ts";
import type { Tensor } from "../../tensor/tensor.ts";

export const copyMetal: MetalImplementation<undefined, [Tensor], [Tensor]> = {
  unsupported: noFloat64,
  run({ inputs: [input], outputs: [output] }) {
    const { grid, threadgroup, loop, runs } = runLoop(output, [input]);
    return launch({
      file: "elementwise/copy.metal",
      name: `copy_${metalTypeOf(input.dtype)}_${metalTypeOf(output.dtype)}`,
      constants: [runs],
      operands: [reads(input), writes(output)],
      parameters: loopBytes(loop),
      grid,
      threadgroup,
    });
  },
};
