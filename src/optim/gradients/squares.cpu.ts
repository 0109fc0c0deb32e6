import type { Implementation } from "../../backend/backend.ts";
import { padded } from "../primitive.ts";
import { CHUNK } from "./chunks.ts";
import { MAX_GRADIENTS, squaresCall } from "./primitive.ts";

export const squaresCpu: Implementation<undefined> = {
  run({ operation, inputs, outputs: [sums] }) {
    const values = {
      ...{ dtype: inputs[0]!.dtype, gradients: inputs.length, chunk: CHUNK },
      ...{ sizes: inputs.map(({ size }) => size), offsets: inputs.map(({ offset }) => offset) },
      sumsOffset: sums!.offset,
    };
    squaresCall(operation, values, [...padded(inputs, MAX_GRADIENTS, undefined), sums]);
  },
};
