import type { Implementation } from "../../backend/backend.ts";
import { slicesOf } from "../../tensor/slices.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type SoftmaxAttributes, type SoftmaxName, softmaxCall } from "./primitive.ts";

export const softmaxCpu = (name: SoftmaxName): Implementation<SoftmaxAttributes, [Tensor, ...Tensor[]], [Tensor]> => ({
  run({ operation, inputs: [x, y = x], outputs: [output], attributes: { axis } }) {
    const operands = [x, y, output];
    softmaxCall(operation, { operation: name, dtype: x.dtype, slices: slicesOf(operands, axis) }, operands);
  },
});
