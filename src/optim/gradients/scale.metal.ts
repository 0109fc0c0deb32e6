import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { padded } from "../primitive.ts";
import { launchOver } from "./launch.metal.ts";
import { MAX_GRADIENTS } from "./primitive.ts";

export const scaleMetal: MetalImplementation<undefined> = {
  unsupported: noFloat64,
  run({ inputs: [factor, ...gradients], outputs }) {
    return launch({
      file: "optim/gradients.metal",
      name: `scale_${metalTypeOf(gradients[0].dtype)}`,
      operands: [
        reads(factor),
        ...padded(gradients, MAX_GRADIENTS, gradients[0]).map(reads),
        ...padded(outputs, MAX_GRADIENTS, outputs[0]).map(writes),
      ],
      ...launchOver(gradients.map(({ size }) => size)),
    });
  },
};
