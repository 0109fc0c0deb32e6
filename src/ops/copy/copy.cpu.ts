import type { Implementation } from "../../backend/backend.ts";
import { copyCall } from "./primitive.ts";

export const copyCpu: Implementation<undefined> = {
  run({ operation, inputs, outputs }) {
    const operands = [inputs[0], outputs[0]];
    copyCall(operation, { from: operands[0].dtype, to: operands[1].dtype, loop: operands }, operands);
  },
};
