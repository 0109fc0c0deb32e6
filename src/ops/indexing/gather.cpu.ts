import type { Implementation } from "../../backend/backend.ts";
import { collapse } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { gatherCall, type IndexAttributes } from "./primitive.ts";
import { errorWithRange } from "./range.cpu.ts";

export const gatherCpu: Implementation<IndexAttributes, [Tensor, Tensor], [Tensor]> = {
  run({ inputs: [x, index], outputs: [output], attributes: { operation, dim, ...caller } }) {
    const size = x.shape[dim]!;
    const operands = [x, index, output];
    const status = gatherCall.status(
      {
        dtype: x.dtype,
        indexDtype: index.dtype,
        offsets: [x.offset, index.offset, output.offset],
        size,
        stride: x.strides[dim]!,
        nest: collapse(output.shape, [x.strides.with(dim, 0), index.strides, output.strides]),
      },
      operands,
    );
    if (status !== 0)
      throw errorWithRange(gatherCall.error(operation, status), { operation, index: index, size, ...caller });
  },
};
