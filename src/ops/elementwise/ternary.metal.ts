import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { loopBytes, runLoop } from "../../backend/metal/loop.ts";
import { type TernaryName, ternaryOperations } from "./primitive.ts";

export const ternaryMetal = (operation: TernaryName): MetalImplementation<undefined> => ({
  unsupported: noFloat64,
  run({ inputs, outputs: [out] }) {
    const { grid, threadgroup, loop, runs } = runLoop(out, inputs);
    return launch({
      file: "elementwise/ternary.metal",
      name: `${operation === "where" ? "where" : "ternary"}_${metalTypeOf(out.dtype)}`,
      constants: [runs, ternaryOperations.ordinal(operation)],
      operands: [...inputs.map(reads), writes(out)],
      parameters: loopBytes(loop),
      grid,
      threadgroup,
    });
  },
});
