import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, writes } from "../../backend/metal/launch.ts";
import { elementGrid } from "../../backend/metal/loop.ts";
import type { Permutation } from "../../random/permutation.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { permutationParameters } from "./primitive.ts";

export const permutationMetal: MetalImplementation<Permutation, readonly Tensor[], [Tensor]> = {
  run({ outputs: [output], attributes }) {
    return launch({
      file: "random/permutation.metal",
      name: `permutation_${metalTypeOf(output.dtype)}`,
      operands: [writes(output)],
      parameters: permutationParameters.bytes({ count: output.size, ...attributes }),
      ...elementGrid(output.size),
    });
  },
};
