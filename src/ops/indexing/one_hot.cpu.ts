import type { Implementation } from "../../backend/backend.ts";
import { lastElement } from "../../core/collections.ts";
import { collapse } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { oneHotCall } from "./primitive.ts";
import { checkRangeOnCpu } from "./range.cpu.ts";

export const oneHotCpu: Implementation<undefined, [Tensor], [Tensor]> = {
  run({ operation, inputs: [index], outputs: [output] }) {
    const classes = lastElement(output.shape);
    checkRangeOnCpu({ operation, index: index, size: classes });
    oneHotCall(
      operation,
      {
        dtype: index.dtype,
        offsets: [index.offset, output.offset],
        classes,
        nest: collapse(index.shape, [index.strides]),
      },
      [index, output],
    );
  },
};
