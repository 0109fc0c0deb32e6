import type { Implementation } from "../../backend/backend.ts";
import { type TernaryName, ternaryCall } from "./primitive.ts";

const callOf = (operation: TernaryName) => ternaryCall.with({ operation });

export const ternaryCpu = (operation: TernaryName): Implementation<undefined> => {
  let call: ReturnType<typeof callOf> | undefined; // made on first use, since a program uses few operations
  return {
    run({ inputs, outputs }) {
      call ??= callOf(operation);
      const operands = [...inputs, outputs[0]];
      call(operation, { dtype: outputs[0].dtype, loop: operands }, operands);
    },
  };
};
