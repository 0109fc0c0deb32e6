import type { Implementation } from "../../backend/backend.ts";
import { collapse } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { IndexDType } from "./indices.ts";
import { checkSignedRange } from "./places.ts";
import { gatherCall, type IndexAttributes } from "./primitive.ts";
import { errorWithRange } from "./range.cpu.ts";

export const gatherCpu: Implementation<IndexAttributes, [Tensor, Tensor], [Tensor]> = {
  run({ inputs: [x, index], outputs: [output], attributes: { operation, dim, wraps = false, ...caller } }) {
    const size = x.shape[dim]!;
    const operands = [x, index, output];
    const status = gatherCall.status(
      {
        dtype: x.dtype,
        indexDtype: index.dtype,
        offsets: [x.offset, index.offset, output.offset],
        size,
        stride: x.strides[dim]!,
        wraps,
        nest: collapse(output.shape, [x.strides.with(dim, 0), index.strides, output.strides]),
      },
      operands,
    );
    if (status === 0) return;
    const error = gatherCall.error(operation, status);
    if (wraps) checkSignedRange(operation, index as Tensor<IndexDType>, size);
    throw errorWithRange(error, { operation, index: index, size, ...caller });
  },
};
