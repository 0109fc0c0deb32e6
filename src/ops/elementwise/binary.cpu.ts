import type { Implementation } from "../../backend/backend.ts";
import { Status } from "../../backend/cpu/abi.ts";
import { type BinaryName, binaryCall } from "./primitive.ts";
import { divisionByZero } from "./zero_divisor.ts";

export const binaryCpu = (operation: BinaryName): Implementation<undefined> => ({
  run({ inputs, outputs }) {
    const operands = [inputs[0]!, inputs[1]!, outputs[0]!];
    const values = { operation, dtype: operands[0]!.dtype, loop: operands };
    const status = binaryCall.status(values, operands);
    if (status === Status.invalidArgument) throw divisionByZero(operation); // the block is right
    if (status !== Status.ok) throw binaryCall.error(operation, status);
  },
});
