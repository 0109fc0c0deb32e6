import type { Implementation } from "../../backend/backend.ts";
import { store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { tupleOf } from "../../core/tuples.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { ADAPTIVE, type PoolingAttributes } from "./primitive.ts";

/** Computes the definition window by window. A later element replaces a smaller one; a NaN replaces any. */
export const maxPoolReference: Implementation<PoolingAttributes, [Tensor], [Tensor, Tensor]> = {
  run({ inputs: [x], outputs: [values, indices], attributes }) {
    const elements = toNumbers(x);
    const [pixels, results] = [elementCount(attributes.input), elementCount(attributes.output)];
    const best = new Float64Array(values.size).fill(Number.NEGATIVE_INFINITY);
    const places = new Float64Array(values.size).fill(-1);
    for (let result = 0; result < best.length; result++) {
      const first = Math.floor(result / results) * pixels;
      for (const place of windowOf(attributes, result % results)) {
        const value = elements[first + place];
        if (!(value > best[result] || Number.isNaN(value) || places[result] < 0)) continue;
        best[result] = value;
        places[result] = place;
      }
    }
    store(values, best);
    if (indices) store(indices, places);
  },
};

export const maxPoolGradientReference: Implementation<PoolingAttributes, [Tensor, Tensor], [Tensor]> = {
  run({ inputs: [gradient, indices], outputs: [output], attributes }) {
    const [pixels, results] = [elementCount(attributes.input), elementCount(attributes.output)];
    const places = toIntegers(indices);
    const sums = new Float64Array(output.size);
    for (const [result, value] of toNumbers(gradient).entries())
      if (places[result] >= 0n) sums[Math.floor(result / results) * pixels + Number(places[result])] += value;
    store(output, sums);
  },
};

/** Returns the row-major positions of a window's elements in its plane, in order. */
function windowOf(attributes: PoolingAttributes, result: number): number[] {
  const { input, output, kernelSize, stride, dilation, before } = attributes;
  let remainder = result;
  const along = [2, 1, 0].map((axis) => {
    const [count, size] = [output[axis], input[axis]];
    const window = remainder % count;
    remainder = Math.floor(remainder / count);
    if (kernelSize[axis] === ADAPTIVE) {
      const start = Math.floor((window * size) / count);
      return Array.from({ length: Math.ceil(((window + 1) * size) / count) - start }, (_, at) => start + at);
    }
    const first = window * stride[axis] - before[axis];
    return Array.from({ length: kernelSize[axis] }, (_, at) => first + at * dilation[axis]).filter(
      (at) => at >= 0 && at < size,
    );
  });
  const [wide, high, deep] = tupleOf(along, 3);
  return deep.flatMap((z) => high.flatMap((y) => wide.map((x) => (z * input[1] + y) * input[2] + x)));
}
