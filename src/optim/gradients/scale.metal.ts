import type { Implementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { gradientTable, THREADS } from "./table.metal.ts";
import { fourteen } from "./table.ts";

export const scaleMetal: Implementation<undefined> = {
  unsupported: noFloat64,
  run({ inputs: [factor, ...gradients], outputs }) {
    const [before, after] = [gradients.map(reads), outputs.map(writes)];
    launch({
      file: "optim/gradients.metal",
      name: `scale_${metalTypeOf(gradients[0]!.dtype)}`,
      operands: [reads(factor!), ...fourteen(before, before[0]!), ...fourteen(after, after[0]!)],
      ...gradientTable(gradients.map(({ size }) => size)),
      threadgroup: THREADS,
    });
  },
};
