import type { Implementation } from "../../backend/backend.ts";
import { type UnaryName, unaryCall } from "./primitive.ts";

const callOf = (operation: UnaryName) => unaryCall.with({ operation });

export const unaryCpu = (operation: UnaryName): Implementation<undefined> => {
  let call: ReturnType<typeof callOf> | undefined; // made on first use, since a program uses few operations
  return {
    run({ inputs, outputs }) {
      call ??= callOf(operation);
      const operands = [inputs[0], outputs[0]];
      call(operation, { dtype: operands[0].dtype, loop: operands }, operands);
    },
  };
};
