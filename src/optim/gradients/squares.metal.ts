import type { Implementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { gradientTable, THREADS } from "./table.metal.ts";
import { fourteen } from "./table.ts";

export const squaresMetal: Implementation<undefined> = {
  unsupported: noFloat64,
  run({ inputs, outputs: [output] }) {
    const gradients = inputs.map(reads);
    launch({
      file: "optim/gradients.metal",
      name: `squares_${metalTypeOf(inputs[0]!.dtype)}`,
      operands: [writes(output!), ...fourteen(gradients, gradients[0]!)],
      ...gradientTable(inputs.map(({ size }) => size)),
      threadgroup: THREADS,
    });
  },
};
