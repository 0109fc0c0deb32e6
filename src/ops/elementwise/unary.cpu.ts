import type { Implementation } from "../../backend/backend.ts";
import { type UnaryName, unaryCall } from "./primitive.ts";

export const unaryCpu = (operation: UnaryName): Implementation<undefined> => ({
  run({ inputs, outputs }) {
    const operands = [inputs[0]!, outputs[0]!];
    unaryCall(operation, { operation, dtype: operands[0]!.dtype, loop: operands }, operands);
  },
});
