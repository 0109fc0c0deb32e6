import type { Implementation } from "../../backend/backend.ts";
import { slicesOf } from "../../tensor/slices.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type SortAttributes, sortCall } from "./primitive.ts";

export const sortCpu: Implementation<SortAttributes, [Tensor], [Tensor, Tensor]> = {
  run({ operation, inputs: [x], outputs: [values, indices], attributes: { dim, descending } }) {
    const operands = [x, values, indices];
    const slices = slicesOf(operands, dim, { isOrdered: true });
    const { dtype } = x;
    sortCall(operation, { dtype, slices, count: values.shape[dim], descending }, operands);
  },
};
