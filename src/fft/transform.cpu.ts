import type { Implementation } from "../backend/backend.ts";
import type { Tensor } from "../tensor/tensor.ts";
import {
  type AxesTransform,
  type ComplexTransform,
  fftCall,
  partsOf,
  type RealTransform,
  realFftCall,
} from "./primitive.ts";

export const complexCpu: Implementation<ComplexTransform, [Tensor], [Tensor]> = {
  run({ operation, inputs: [x], outputs: [out], attributes: { axis, ...direction } }) {
    transform(operation, x, out, { axes: [axis], isReal: false, ...direction });
  },
};

export const axesCpu: Implementation<AxesTransform, [Tensor], [Tensor]> = {
  run({ operation, inputs: [x], outputs: [out], attributes }) {
    transform(operation, x, out, attributes);
  },
};

function transform(operation: string, x: Tensor, out: Tensor, { axes, isReal, inverse, scale }: AxesTransform): void {
  const parts = axes.map((axis) => partsOf(out, axis));
  const values = {
    dtype: x.dtype,
    inverse,
    scale,
    isReal,
    passes: parts.length,
    offsets: [x.offset, out.offset],
    outer: parts.map(({ outer }) => outer),
    length: parts.map(({ length }) => length),
    inner: parts.map(({ inner }) => inner),
  };
  fftCall(operation, values, [x, out]);
}

export const realCpu: Implementation<RealTransform, [Tensor], [Tensor]> = {
  run({ operation, inputs: [x], outputs: [out], attributes: { length, toReal, inverse, scale } }) {
    const rows = (toReal ? out : x).size / Math.max(length, 1);
    const values = { dtype: x.dtype, toReal, inverse, scale, rows, length, offsets: [x.offset, out.offset] };
    realFftCall(operation, values, [x, out]);
  },
};
