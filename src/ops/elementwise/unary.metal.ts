import type { Implementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { type UnaryName, unaryNames } from "./codes.ts";
import { loopNest } from "./loop.metal.ts";

export const unaryMetal = (name: UnaryName): Implementation<undefined> => ({
  unsupported: noFloat64,
  run({ inputs: [input], outputs: [output] }) {
    const { grid, threadgroup, parameters } = loopNest(output!, [input!]);
    launch({
      file: "elementwise/unary.metal",
      name: `unary_${metalTypeOf(input!.dtype)}_${metalTypeOf(output!.dtype)}`,
      constants: [unaryNames.indexOf(name)],
      operands: [reads(input!), writes(output!)],
      parameters,
      grid,
      threadgroup,
    });
  },
});
