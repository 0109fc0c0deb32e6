import type { Implementation } from "../../backend/backend.ts";
import { type TernaryName, ternaryCall } from "./primitive.ts";

export const ternaryCpu = (operation: TernaryName): Implementation<undefined> => ({
  run({ inputs, outputs }) {
    const operands = [...inputs, outputs[0]!];
    ternaryCall(operation, { operation, dtype: outputs[0]!.dtype, loop: operands }, operands);
  },
});
