import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, writes } from "../../backend/metal/launch.ts";
import { elementGrid } from "../../backend/metal/loop.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { noFloat64Result } from "../creation/range.metal.ts";
import { type DistributionAttributes, distributionParameters, drawOf } from "./primitive.ts";

/** Elements per thread: one block of random words. */
const BLOCK = 4;

export const distributionMetal: MetalImplementation<DistributionAttributes, readonly Tensor[], [Tensor]> = {
  unsupported: noFloat64Result,
  run({ outputs: [output], attributes }) {
    return launch({
      file: "random/distribution.metal",
      name: `${attributes.distribution.kind}_${metalTypeOf(output.dtype)}`,
      operands: [writes(output)],
      parameters: distributionParameters.bytes(drawOf(attributes, output.size)),
      ...elementGrid(Math.ceil(output.size / BLOCK)),
    });
  },
};
