import type { Implementation } from "../../backend/backend.ts";
import { type TernaryName, ternaryCall } from "./primitive.ts";

export const ternaryCpu = (operation: TernaryName): Implementation<undefined> => {
  const call = ternaryCall.with({ operation });
  return {
    run({ inputs, outputs }) {
      const operands = [...inputs, outputs[0]];
      call(operation, { dtype: outputs[0].dtype, loop: operands }, operands);
    },
  };
};
