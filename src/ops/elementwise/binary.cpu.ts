import type { Implementation } from "../../backend/backend.ts";
import { Status } from "../../backend/cpu/abi.ts";
import { type BinaryName, binaryCall } from "./primitive.ts";
import { divisionByZero } from "./zero_divisor.ts";

const callOf = (operation: BinaryName) => binaryCall.with({ operation });

export const binaryCpu = (operation: BinaryName): Implementation<undefined> => {
  let call: ReturnType<typeof callOf> | undefined; // made on first use, since a program uses few operations
  return {
    run({ inputs, outputs }) {
      call ??= callOf(operation);
      const operands = [inputs[0], inputs[1], outputs[0]];
      const status = call.status({ dtype: operands[0].dtype, loop: operands }, operands);
      if (status === Status.invalidArgument) throw divisionByZero(operation); // all other arguments are valid
      if (status !== Status.ok) throw call.error(operation, status);
    },
  };
};
