import type { Implementation } from "../../backend/backend.ts";
import { store } from "../../backend/reference/elements.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { RangeAttributes, WholeRangeAttributes } from "./primitive.ts";

export const rangeReference: Implementation<RangeAttributes, readonly Tensor[], [Tensor]> = {
  run({ outputs: [output], attributes: { start, step, end, forward } }) {
    const count = output.size;
    store(
      output,
      Float64Array.from({ length: count }, (_, i) => (i < forward ? start + i * step : end - (count - 1 - i) * step)),
    );
  },
};

export const wholeRangeReference: Implementation<WholeRangeAttributes, readonly Tensor[], [Tensor]> = {
  run({ outputs: [output], attributes: { start, step, remainder, divisor } }) {
    // BigInt division truncates toward zero.
    const value = (i: bigint) => ((start + i * step) * divisor + i * remainder) / divisor;
    store(
      output,
      Array.from({ length: output.size }, (_, i) => value(BigInt(i))),
    );
  },
};
