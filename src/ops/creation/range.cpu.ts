import type { Implementation } from "../../backend/backend.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type RangeAttributes, rangeCall, type WholeRangeAttributes, wholeRangeCall } from "./primitive.ts";

export const rangeCpu: Implementation<RangeAttributes, readonly Tensor[], [Tensor]> = {
  run({ operation, outputs: [output], attributes }) {
    const { dtype, offset, size: count } = output;
    rangeCall(operation, { ...attributes, dtype, offset, count }, [output]);
  },
};

export const wholeRangeCpu: Implementation<WholeRangeAttributes, readonly Tensor[], [Tensor]> = {
  run({ operation, outputs: [output], attributes }) {
    const { dtype, offset, size: count } = output;
    wholeRangeCall(operation, { ...attributes, dtype, offset, count }, [output]);
  },
};
