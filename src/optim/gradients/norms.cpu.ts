import type { Implementation } from "../../backend/backend.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { padded } from "../primitive.ts";
import { CHUNK } from "./chunks.ts";
import { MAX_GRADIENTS, normsCall } from "./primitive.ts";

export const normsCpu: Implementation<undefined, readonly Tensor[], [Tensor]> = {
  run({ operation, inputs, outputs: [norms] }) {
    const values = {
      dtype: inputs[0].dtype,
      gradients: inputs.length,
      chunk: CHUNK,
      sizes: inputs.map(({ size }) => size),
      offsets: inputs.map(({ offset }) => offset),
      normsOffset: norms.offset,
    };
    normsCall(operation, values, [...padded(inputs, MAX_GRADIENTS, undefined), norms]);
  },
};
