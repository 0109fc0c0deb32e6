import type { Implementation } from "../../backend/backend.ts";
import { plainList } from "../../tensor/frozen.ts";
import { collapse } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { IndexDType } from "./indices.ts";
import { checkSignedRange } from "./places.ts";
import { gatherCall, type IndexAttributes } from "./primitive.ts";
import { errorWithRange } from "./range.cpu.ts";

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
    const { wraps: _, ...caller } = attributes;
    const error = gatherCall.error(operation, status);
    if (wraps) checkSignedRange(operation, index as Tensor<IndexDType>, size);
    throw errorWithRange(error, { ...caller, index, size });
  },
};
