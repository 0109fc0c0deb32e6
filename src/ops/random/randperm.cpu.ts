import type { Implementation } from "../../backend/backend.ts";
import type { Permutation } from "../../random/permutation.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { permutationCall } from "./primitive.ts";

export const permutationCpu: Implementation<Permutation, readonly Tensor[], [Tensor]> = {
  run({ operation, outputs: [output], attributes }) {
    const { dtype, offset, size: count } = output;
    permutationCall(operation, { dtype, offset, count, ...attributes }, [output]);
  },
};
