import type { Implementation } from "../../backend/backend.ts";
import { plainList } from "../../tensor/frozen.ts";
import { collapse } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import {
  type IndexAttributes,
  type ScatterAttributes,
  type ScatterOthersAttributes,
  scatterCall,
  scatterOthersCall,
} from "./primitive.ts";
import { indexRefusal } from "./wrapped_range.cpu.ts";

export const scatterCpu: Implementation<ScatterAttributes, [Tensor, Tensor, Tensor], [Tensor]> = {
  run({ inputs: [x, index, source], outputs: [output], attributes }) {
    const { operation, way, includesSelf, wraps = false } = attributes;
    const operands = [x, index, source, output];
    const block = Object.assign(slicesOf(operands, attributes), { way, includesSelf, wraps });
    const status = scatterCall.status(block, operands);
    if (status !== 0)
      throw indexRefusal(scatterCall.error(operation, status), index, x.shape[attributes.dim], attributes);
  },
};

export const scatterOthersCpu: Implementation<ScatterOthersAttributes, [Tensor, Tensor, Tensor], [Tensor]> = {
  run({ inputs: [x, index, source], outputs: [output], attributes }) {
    const { operation, includesSelf } = attributes;
    const operands = [x, index, source, output];
    const block = { ...slicesOf(operands, attributes), includesSelf };
    const status = scatterOthersCall.status(block, operands);
    if (status !== 0)
      throw indexRefusal(scatterOthersCall.error(operation, status), index, x.shape[attributes.dim], attributes);
  },
};

/** Describes the slices along an axis: size and strides along it, and the loops over all other axes. */
function slicesOf(operands: readonly Tensor[], { dim }: IndexAttributes) {
  const [x, index, source] = operands as [Tensor, Tensor, Tensor];
  const all = operands.map(({ strides }) => plainList(strides));
  return {
    dtype: x.dtype,
    indexDtype: index.dtype,
    offsets: operands.map(({ offset }) => offset),
    length: source.shape[dim],
    size: x.shape[dim],
    strides: all.map((strides) => strides[dim]),
    slices: collapse(x.shape.with(dim, 1), all),
  };
}
