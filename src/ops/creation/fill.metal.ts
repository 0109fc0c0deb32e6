import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, writes } from "../../backend/metal/launch.ts";
import { runLoop } from "../../backend/metal/loop.ts";
import { bytesOf } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { elementBits } from "./element_bits.ts";
import { type FillAttributes, fillParameters } from "./primitive.ts";

export const fillMetal: MetalImplementation<FillAttributes, readonly Tensor[], [Tensor]> = {
  run({ outputs: [output], attributes: { value } }) {
    const { dtype } = output;
    const { grid, threadgroup, loop, runs } = runLoop(output, []);
    return launch({
      file: "creation/fill.metal",
      name: `fill_${bytesOf(dtype)}`,
      constants: [runs],
      operands: [writes(output)],
      parameters: fillParameters.bytes({ loop, bits: elementBits(dtype, value) }),
      grid,
      threadgroup,
    });
  },
};
