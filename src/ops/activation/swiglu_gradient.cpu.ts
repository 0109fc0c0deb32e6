import type { Implementation } from "../../backend/backend.ts";
import { swigluGradientCall } from "./primitive.ts";

export const swigluGradientCpu: Implementation<undefined> = {
  run({ operation, inputs, outputs }) {
    const [gateGradient] = outputs;
    const values = { dtype: gateGradient!.dtype, loop: [...inputs, gateGradient!] };
    swigluGradientCall(operation, values, [...inputs, ...outputs]);
  },
};
