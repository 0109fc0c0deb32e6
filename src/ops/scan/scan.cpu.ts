import type { Implementation } from "../../backend/backend.ts";
import { slicesOf } from "../../tensor/slices.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type ScanAttributes, type ScanName, scanCall } from "./primitive.ts";

export const scanCpu = (name: ScanName): Implementation<ScanAttributes, [Tensor, ...Tensor[]], [Tensor]> => ({
  run({ operation, inputs: [x, a = x], outputs: [output], attributes: { axis, reverse } }) {
    const operands = [x, a, output];
    const slices = slicesOf(operands, axis, { reverse });
    scanCall(operation, { operation: name, from: x.dtype, to: output.dtype, slices }, operands);
  },
});
