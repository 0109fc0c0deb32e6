import type { Implementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { broadcastLoop } from "../../backend/metal/loop.ts";
import { type UnaryName, unaryNames } from "./codes.ts";

export const unaryMetal = (name: UnaryName): Implementation<undefined> => {
  const code = unaryNames.indexOf(name);
  const kernel = code < unaryNames.indexOf("logicalNot") ? "unary" : "unary_question";
  return {
    unsupported: noFloat64,
    run({ inputs: [input], outputs: [output] }) {
      const { grid, threadgroup, parameters } = broadcastLoop(output!, [input!]);
      launch({
        file: "elementwise/unary.metal",
        name: `${kernel}_${metalTypeOf(input!.dtype)}`,
        constants: [code],
        operands: [reads(input!), writes(output!)],
        parameters,
        grid,
        threadgroup,
      });
    },
  };
};
