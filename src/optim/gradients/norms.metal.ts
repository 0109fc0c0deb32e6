import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { padded } from "../primitive.ts";
import { launchOver } from "./launch.metal.ts";
import { MAX_GRADIENTS } from "./primitive.ts";

export const normsMetal: MetalImplementation<undefined, readonly Tensor[], [Tensor]> = {
  unsupported: noFloat64,
  run({ inputs, outputs: [output] }) {
    return launch({
      file: "optim/gradients.metal",
      name: `norms_${metalTypeOf(inputs[0].dtype)}`,
      operands: [writes(output), ...padded(inputs, MAX_GRADIENTS, inputs[0]).map(reads)],
      ...launchOver(inputs.map(({ size }) => size)),
    });
  },
};
