import type { Implementation } from "../../backend/backend.ts";
import { plainList } from "../../tensor/frozen.ts";
import { collapse } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import type { IndexDType } from "./indices.ts";
import { checkSignedRange } from "./places.ts";
import { gatherCall, type IndexAttributes } from "./primitive.ts";
import { errorWithRange } from "./range.cpu.ts";

const vectorOf = ({ storage, dtype, shape, strides, offset }: Tensor, dim: number): Tensor =>
  new Tensor(storage, dtype, [shape[dim]], [strides[dim]], offset);

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
    if (wraps) {
      // an index that is broadcast along the other axes is reported as the vector that it is
      const places = attributes.axes ? vectorOf(index, dim) : index;
      checkSignedRange(operation, places as Tensor<IndexDType>, size);
    }
    throw errorWithRange(error, { ...caller, index, size });
  },
};
