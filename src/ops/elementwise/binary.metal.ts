import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { loopBytes, runLoop } from "../../backend/metal/loop.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type BinaryName, binaryOperations } from "./primitive.ts";

export const binaryMetal = (
  operation: BinaryName,
  isPredicate: boolean,
): MetalImplementation<undefined, [Tensor, Tensor], [Tensor]> => {
  const kernel = isPredicate ? "binary_predicate" : "binary";
  return {
    unsupported: noFloat64,
    run({ inputs: [a, b], outputs: [out] }) {
      const { grid, threadgroup, loop, runs } = runLoop(out, [a, b]);
      return launch({
        file: "elementwise/binary.metal",
        name: `${kernel}_${metalTypeOf(a.dtype)}`,
        constants: [runs, binaryOperations.ordinal(operation)],
        operands: [reads(a), reads(b), writes(out)],
        parameters: loopBytes(loop),
        grid,
        threadgroup,
      });
    },
  };
};
