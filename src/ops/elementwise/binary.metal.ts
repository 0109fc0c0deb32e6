import type { Implementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { broadcastLoop } from "../../backend/metal/loop.ts";
import { type BinaryName, binaryNames } from "./codes.ts";

export const binaryMetal = (name: BinaryName): Implementation<undefined> => {
  const code = binaryNames.indexOf(name);
  const kernel = code < binaryNames.indexOf("eq") ? "binary" : "binary_question";
  return {
    unsupported: noFloat64,
    run({ inputs: [a, b], outputs: [output] }) {
      const { grid, threadgroup, parameters } = broadcastLoop(output!, [a!, b!]);
      launch({
        file: "elementwise/binary.metal",
        name: `${kernel}_${metalTypeOf(a!.dtype)}`,
        constants: [code],
        operands: [reads(a!), reads(b!), writes(output!)],
        parameters,
        grid,
        threadgroup,
      });
    },
  };
};
