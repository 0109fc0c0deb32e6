import type { Implementation } from "../../backend/backend.ts";
import type { OrchardError } from "../../core/errors.ts";
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
import { errorWithRange } from "./range.cpu.ts";

export const scatterCpu: Implementation<ScatterAttributes, [Tensor, Tensor, Tensor], [Tensor]> = {
  run({ inputs: [x, index, source], outputs: [output], attributes }) {
    const { operation, way, includesSelf } = attributes;
    const operands = [x, index, source, output];
    const block = Object.assign(slicesOf(operands, attributes), { way, includesSelf });
    const status = scatterCall.status(block, operands);
    if (status !== 0) throw refusal(scatterCall.error(operation, status), operands, attributes);
  },
};

export const scatterOthersCpu: Implementation<ScatterOthersAttributes, [Tensor, Tensor, Tensor], [Tensor]> = {
  run({ inputs: [x, index, source], outputs: [output], attributes }) {
    const { operation, includesSelf } = attributes;
    const operands = [x, index, source, output];
    const block = { ...slicesOf(operands, attributes), includesSelf };
    const status = scatterOthersCall.status(block, operands);
    if (status !== 0) throw refusal(scatterOthersCall.error(operation, status), operands, attributes);
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

const refusal = (error: OrchardError, [x, index]: readonly Tensor[], { operation, dim, axes }: IndexAttributes) =>
  errorWithRange(error, { operation, index: index, size: x.shape[dim], axes });
