import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { loopBytes, runLoop } from "../../backend/metal/loop.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type UnaryName, unaryOperations } from "./primitive.ts";

export const unaryMetal = (
  operation: UnaryName,
  isPredicate: boolean,
): MetalImplementation<undefined, [Tensor], [Tensor]> => {
  const kernel = isPredicate ? "unary_predicate" : "unary";
  return {
    unsupported: noFloat64,
    run({ inputs: [x], outputs: [out] }) {
      const { grid, threadgroup, loop, runs } = runLoop(out, [x]);
      return launch({
        file: "elementwise/unary.metal",
        name: `${kernel}_${metalTypeOf(x.dtype)}`,
        constants: [runs, unaryOperations.ordinal(operation)],
        operands: [reads(x), writes(out)],
        parameters: loopBytes(loop),
        grid,
        threadgroup,
      });
    },
  };
};
