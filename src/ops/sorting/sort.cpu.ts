import type { Implementation } from "../../backend/backend.ts";
import { slicesOf } from "../../tensor/slices.ts";
import { type SortAttributes, sortCall } from "./primitive.ts";

export const sortCpu: Implementation<SortAttributes> = {
  run({ operation, inputs: [x], outputs: [values, indices], attributes: { dim, descending } }) {
    const operands = [x!, values!, indices!];
    const slices = slicesOf(operands, dim, { isOrdered: true });
    const { dtype } = x!;
    sortCall(operation, { dtype, slices, count: values!.shape[dim]!, descending }, operands);
  },
};
