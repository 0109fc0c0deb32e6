import type { Implementation } from "../../backend/backend.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { swigluGradientCall } from "./primitive.ts";

export const swigluGradientCpu: Implementation<undefined, readonly Tensor[], [Tensor]> = {
  run({ operation, inputs, outputs }) {
    const [gateGradient] = outputs;
    const values = { dtype: gateGradient.dtype, loop: [...inputs, gateGradient] };
    swigluGradientCall(operation, values, [...inputs, ...outputs]);
  },
};
