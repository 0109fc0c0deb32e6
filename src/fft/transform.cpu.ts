import type { Implementation } from "../backend/backend.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { type ComplexTransform, fftCall, partsOf, type RealTransform, realFftCall } from "./primitive.ts";

export const complexCpu: Implementation<ComplexTransform, [Tensor], [Tensor]> = {
  run({ operation, inputs: [x], outputs: [out], attributes: { axis, inverse, scale } }) {
    const offsets = [x.offset, out.offset];
    fftCall(operation, { dtype: x.dtype, inverse, scale, ...partsOf(x, axis), offsets }, [x, out]);
  },
};

export const realCpu: Implementation<RealTransform, [Tensor], [Tensor]> = {
  run({ operation, inputs: [x], outputs: [out], attributes: { length, toReal, inverse, scale } }) {
    const rows = (toReal ? out : x).size / Math.max(length, 1);
    const values = { dtype: x.dtype, toReal, inverse, scale, rows, length, offsets: [x.offset, out.offset] };
    realFftCall(operation, values, [x, out]);
  },
};
