import type { Implementation } from "../../backend/backend.ts";
import { Status } from "../../backend/cpu/abi.ts";
import { type BinaryName, binaryCall } from "./primitive.ts";
import { divisionByZero } from "./zero_divisor.ts";

export const binaryCpu = (operation: BinaryName): Implementation<undefined> => {
  const call = binaryCall.with({ operation });
  return {
    run({ inputs, outputs }) {
      const operands = [inputs[0], inputs[1], outputs[0]];
      const status = call.status({ dtype: operands[0].dtype, loop: operands }, operands);
      if (status === Status.invalidArgument) throw divisionByZero(operation); // all other arguments are valid
      if (status !== Status.ok) throw call.error(operation, status);
    },
  };
};
