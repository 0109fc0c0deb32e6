import type { Implementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { broadcastLoop } from "../../backend/metal/loop.ts";
import { type TernaryName, ternaryNames } from "./codes.ts";

export const ternaryMetal = (name: TernaryName): Implementation<undefined> => ({
  unsupported: noFloat64,
  run({ inputs, outputs: [output] }) {
    const { grid, threadgroup, parameters } = broadcastLoop(output!, inputs);
    launch({
      file: "elementwise/ternary.metal",
      name: `${name === "where" ? "where" : "ternary"}_${metalTypeOf(output!.dtype)}`,
      constants: [ternaryNames.indexOf(name)],
      operands: [...inputs.map(reads), writes(output!)],
      parameters,
      grid,
      threadgroup,
    });
  },
});
