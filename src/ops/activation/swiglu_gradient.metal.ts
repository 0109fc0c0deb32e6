import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { loopBytes, runLoop } from "../../backend/metal/loop.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** Both results have the same layout, so the loop nest describes only the first. */
export const swigluGradientMetal: MetalImplementation<undefined, readonly Tensor[], [Tensor, Tensor]> = {
  unsupported: noFloat64,
  run({ inputs, outputs: [gateGradient, upGradient] }) {
    const { grid, threadgroup, loop, runs } = runLoop(gateGradient, inputs);
    return launch({
      file: "activation/swiglu_gradient.metal",
      name: `swiglu_gradient_${metalTypeOf(gateGradient.dtype)}`,
      constants: [runs],
      operands: [...inputs.map(reads), writes(gateGradient), writes(upGradient)],
      parameters: loopBytes(loop),
      grid,
      threadgroup,
    });
  },
};
