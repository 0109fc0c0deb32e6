import type { Implementation } from "../../backend/backend.ts";
import { store } from "../../backend/reference/elements.ts";
import { type Permutation, permuted } from "../../random/permutation.ts";
import type { Tensor } from "../../tensor/tensor.ts";

export const permutationReference: Implementation<Permutation, readonly Tensor[], [Tensor]> = {
  run({ outputs: [output], attributes }) {
    const count = output.size;
    store(
      output,
      Array.from({ length: count }, (_, index) => BigInt(permuted(attributes, count, index))),
    );
  },
};
