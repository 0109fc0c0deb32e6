import type { Implementation } from "../../backend/backend.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { dequantizeCall, type WeightAttributes, weightOperands, weightValues } from "../primitive.ts";

export const dequantizeCpu: Implementation<WeightAttributes, readonly Tensor[], [Tensor]> = {
  run({ operation, inputs, outputs: [output], attributes }) {
    const { dtype } = output;
    dequantizeCall(operation, { ...weightValues(attributes, inputs), dtype }, [...weightOperands(inputs), output]);
  },
};
