import type { Implementation } from "../../backend/backend.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type MultinomialAttributes, multinomialCall } from "./primitive.ts";

export const multinomialCpu: Implementation<MultinomialAttributes, [Tensor], [Tensor]> = {
  run({ operation, inputs: [weights], outputs: [output], attributes }) {
    const { dtype, shape, strides, offset: weightsOffset } = weights;
    const [rows, categories] = tupleOf(shape, 2);
    const [rowStride, stride] = tupleOf(strides, 2);
    multinomialCall(
      operation,
      { dtype, weightsOffset, offset: output.offset, rows, ...attributes, categories, rowStride, stride },
      [weights, output],
    );
  },
};
