import type { Implementation } from "../../backend/backend.ts";
import { type UnaryName, unaryCall } from "./primitive.ts";

export const unaryCpu = (operation: UnaryName): Implementation<undefined> => {
  const call = unaryCall.with({ operation });
  return {
    run({ inputs, outputs }) {
      const operands = [inputs[0], outputs[0]];
      call(operation, { dtype: operands[0].dtype, loop: operands }, operands);
    },
  };
};
