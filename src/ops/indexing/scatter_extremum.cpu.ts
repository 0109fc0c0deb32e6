import type { Implementation } from "../../backend/backend.ts";
import { collapse } from "../../tensor/shape.ts";
import { type ScatterExtremumAttributes, scatterExtremumCall } from "./primitive.ts";
import { checkRangeOnCpu } from "./range.cpu.ts";

export const scatterExtremumCpu: Implementation<ScatterExtremumAttributes> = {
  run({ inputs: [x, index, source], outputs: [output], attributes: { operation, dim, axes, ...which } }) {
    checkRangeOnCpu({ operation, index: index!, size: x!.shape[dim]!, axes });
    const operands = [x!, index!, source!, output!];
    const slices = collapse(
      x!.shape.with(dim, 1),
      operands.map(({ strides }) => strides),
    );
    const block = {
      ...{ dtype: x!.dtype, indexDtype: index!.dtype, offsets: operands.map(({ offset }) => offset) },
      ...{ length: source!.shape[dim]!, size: x!.shape[dim]!, strides: operands.map(({ strides }) => strides[dim]!) },
      ...{ slices, ...which },
    };
    scatterExtremumCall(operation, block, operands);
  },
};
