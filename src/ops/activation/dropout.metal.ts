import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { elementGrid, runLoop } from "../../backend/metal/loop.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type DropoutAttributes, dropoutParameters } from "./primitive.ts";

/** Elements that share a block of random words. If elements are strided, a thread processes one block. */
const BLOCK = 4;

export const dropoutMetal: MetalImplementation<DropoutAttributes, [Tensor], [Tensor]> = {
  unsupported: noFloat64,
  run({ inputs: [x], outputs: [out], attributes }) {
    const { loop, runs, ...threads } = runLoop(out, [x]);
    return launch({
      file: "activation/dropout.metal",
      name: `dropout_${metalTypeOf(x.dtype)}`,
      constants: [runs],
      operands: [reads(x), writes(out)],
      parameters: dropoutParameters.bytes({ loop, ...attributes }),
      ...(runs === 1 ? elementGrid(Math.ceil(loop.count / BLOCK)) : threads),
    });
  },
};
