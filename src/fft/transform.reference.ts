import type { Implementation } from "../backend/backend.ts";
import { store, toNumbers } from "../backend/reference/elements.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { rowOf, transformed } from "./definition.ts";
import { type ComplexTransform, partsOf, type RealTransform } from "./primitive.ts";

export const complexReference: Implementation<ComplexTransform, [Tensor], [Tensor]> = {
  run({ inputs: [x], outputs: [out], attributes: { axis, inverse, scale } }) {
    const { outer, length, inner } = partsOf(x, axis);
    const numbers = toNumbers(x);
    const results = new Float64Array(numbers.length);
    for (let line = 0; line < outer * inner; line++) {
      const first = Math.floor(line / inner) * length * inner + (line % inner);
      const row = rowOf(length);
      for (let j = 0; j < length; j++) {
        row.re[j] = numbers[2 * (first + j * inner)];
        row.im[j] = numbers[2 * (first + j * inner) + 1];
      }
      const { re, im } = transformed(row, inverse ? 1 : -1);
      for (let k = 0; k < length; k++) {
        results[2 * (first + k * inner)] = scale * re[k];
        results[2 * (first + k * inner) + 1] = scale * im[k];
      }
    }
    store(out, results);
  },
};

export const realReference: Implementation<RealTransform, [Tensor], [Tensor]> = {
  run({ inputs: [x], outputs: [out], attributes }) {
    const { length, toReal } = attributes;
    const numbers = toNumbers(x);
    const results = new Float64Array(out.size);
    const [from, to] = toReal ? [pairsOf(length), length] : [length, pairsOf(length)];
    for (let row = 0; row * from < numbers.length; row++) {
      const given = numbers.subarray(row * from, (row + 1) * from);
      results.set((toReal ? realOf : spectrumOf)(given, attributes), row * to);
    }
    store(out, results);
  },
};

/** The length of a half spectrum, in numbers. */
const pairsOf = (length: number): number => 2 * (Math.floor(length / 2) + 1);

function spectrumOf(row: Float64Array, { length, inverse, scale }: RealTransform): Float64Array {
  const { re, im } = transformed({ re: row, im: new Float64Array(length) }, inverse ? 1 : -1);
  const result = new Float64Array(pairsOf(length));
  for (let k = 0; 2 * k < result.length; k++) {
    result[2 * k] = scale * re[k];
    result[2 * k + 1] = 2 * k === length || k === 0 ? 0 : scale * im[k];
  }
  return result;
}

function realOf(pairs: Float64Array, { length, inverse, scale }: RealTransform): Float64Array {
  const row = rowOf(length);
  for (let k = 0; 2 * k <= length; k++) {
    const hasPair = k > 0 && 2 * k < length;
    row.re[k] = pairs[2 * k];
    row.im[k] = hasPair ? pairs[2 * k + 1] : 0;
    if (!hasPair) continue;
    row.re[length - k] = pairs[2 * k];
    row.im[length - k] = -pairs[2 * k + 1];
  }
  return transformed(row, inverse ? 1 : -1).re.map((value) => scale * value);
}
