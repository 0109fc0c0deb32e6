import type { Implementation } from "../../backend/backend.ts";
import { collapse } from "../../tensor/shape.ts";
import { type IndexAttributes, scatterAddCall } from "./primitive.ts";
import { checkRangeOnCpu } from "./range.cpu.ts";

export const scatterAddCpu: Implementation<IndexAttributes> = {
  run({ inputs: [x, index, source], outputs: [output], attributes: { operation, dim, axes } }) {
    checkRangeOnCpu({ operation, index: index!, size: x!.shape[dim]!, axes });
    const operands = [x!, index!, source!, output!];
    const slices = collapse(
      x!.shape.with(dim, 1),
      operands.map(({ strides }) => strides),
    );
    scatterAddCall(
      operation,
      {
        dtype: x!.dtype,
        indexDtype: index!.dtype,
        offsets: operands.map(({ offset }) => offset),
        length: source!.shape[dim]!,
        size: x!.shape[dim]!,
        strides: operands.map(({ strides }) => strides[dim]!),
        slices,
      },
      operands,
    );
  },
};
