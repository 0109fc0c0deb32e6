import type { Implementation } from "../../backend/backend.ts";
import { plainList } from "../../tensor/frozen.ts";
import { collapse } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { gatherCall, type IndexAttributes } from "./primitive.ts";
import { indexRefusal } from "./wrapped_range.cpu.ts";

export const gatherCpu: Implementation<IndexAttributes, [Tensor, Tensor], [Tensor]> = {
  run({ inputs: [x, index], outputs: [output], attributes }) {
    const { operation, dim, wraps = false } = attributes;
    const size = x.shape[dim];
    const operands = [x, index, output];
    const status = gatherCall.status(
      {
        dtype: x.dtype,
        indexDtype: index.dtype,
        offsets: [x.offset, index.offset, output.offset],
        size,
        stride: x.strides[dim],
        wraps,
        nest: collapse(output.shape, [plainList(x.strides).with(dim, 0), index.strides, output.strides]),
      },
      operands,
    );
    if (status === 0) return;
    throw indexRefusal(gatherCall.error(operation, status), index, size, attributes);
  },
};
