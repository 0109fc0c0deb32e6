import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { broadcastLoop } from "../../backend/metal/loop.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { bernoulliParameters, type RandomStart } from "./primitive.ts";

export const bernoulliMetal: MetalImplementation<RandomStart, [Tensor], [Tensor]> = {
  unsupported: noFloat64,
  run({ inputs: [p], outputs: [output], attributes: { key, counter } }) {
    const { grid, threadgroup, loop } = broadcastLoop(output, [p]);
    return launch({
      file: "random/bernoulli.metal",
      name: `bernoulli_${metalTypeOf(p.dtype)}_${metalTypeOf(output.dtype)}`,
      operands: [reads(p), writes(output)],
      parameters: bernoulliParameters.bytes({ loop, key, counter }),
      grid,
      threadgroup,
    });
  },
};
