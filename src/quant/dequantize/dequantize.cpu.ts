import type { Implementation } from "../../backend/backend.ts";
import { dequantizeCall, type WeightAttributes, weightOperands, weightValues } from "../primitive.ts";

export const dequantizeCpu: Implementation<WeightAttributes> = {
  run({ operation, inputs, outputs: [output], attributes }) {
    const { dtype } = output!;
    dequantizeCall(operation, { ...weightValues(attributes, inputs), dtype }, [...weightOperands(inputs), output]);
  },
};
