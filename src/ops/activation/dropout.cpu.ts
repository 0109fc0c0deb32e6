import type { Implementation } from "../../backend/backend.ts";
import { type DropoutAttributes, dropoutCall } from "./primitive.ts";

export const dropoutCpu: Implementation<DropoutAttributes> = {
  run({ operation, inputs, outputs, attributes }) {
    const operands = [inputs[0], outputs[0]];
    dropoutCall(operation, { dtype: operands[0].dtype, ...attributes, loop: operands }, operands);
  },
};
