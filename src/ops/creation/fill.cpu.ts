import type { Implementation } from "../../backend/backend.ts";
import { bytesOf } from "../../tensor/dtype.ts";
import { collapse } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { elementBits } from "./element_bits.ts";
import { type FillAttributes, fillCall } from "./primitive.ts";

export const fillCpu: Implementation<FillAttributes, readonly Tensor[], [Tensor]> = {
  run({ operation, outputs: [output], attributes: { value } }) {
    const { dtype, offset, shape, strides } = output;
    const bits = elementBits(dtype, value);
    fillCall(operation, { bytes: bytesOf(dtype), offset, bits, nest: collapse(shape, [strides]) }, [output]);
  },
};
