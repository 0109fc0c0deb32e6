import type { Implementation } from "../../backend/backend.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { quantizedMatmulCall, weightOperands, weightValues } from "../primitive.ts";
import { layoutOfRows, type ProductAttributes, productInputs } from "./attributes.ts";

export const quantizedMatmulCpu: Implementation<ProductAttributes, readonly Tensor[], [Tensor]> = {
  run({ operation, inputs, outputs: [output], attributes }) {
    const { count, isTransposed, isFast, hasBias } = attributes;
    const { x, weights, bias } = productInputs(inputs, attributes);
    const fields = {
      dtype: x.dtype,
      count,
      xOffset: x.offset,
      ...layoutOfRows(x)!,
      isTransposed,
      isFast,
      hasBias,
      biasOffset: bias?.offset ?? 0,
    };
    const operands = [...weightOperands(weights), x, bias, output];
    quantizedMatmulCall(operation, { ...weightValues(attributes, weights), ...fields }, operands);
  },
};
