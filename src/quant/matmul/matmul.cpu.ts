import type { Implementation } from "../../backend/backend.ts";
import { quantizedMatmulCall, weightOperands, weightValues } from "../primitive.ts";
import { type ProductAttributes, stridesOf } from "./attributes.ts";

export const quantizedMatmulCpu: Implementation<ProductAttributes> = {
  run({ operation, inputs: [x, ...weights], outputs: [output], attributes }) {
    const { count, isTransposed, isFast } = attributes;
    const own = { dtype: x!.dtype, count, xOffset: x!.offset, xStrides: stridesOf(x!), isTransposed, isFast };
    const operands = [...weightOperands(weights), x, output];
    quantizedMatmulCall(operation, { ...weightValues(attributes, weights), ...own }, operands);
  },
};
