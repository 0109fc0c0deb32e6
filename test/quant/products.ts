/** Products with quantized weights: operands, the oracle in float64, and errors relative to their bounds. */
import { expect } from "bun:test";
import { withBackend } from "../../src/backend/policy.ts";
import { dequantize, fromArray, quantize, type Tensor } from "../../src/index.ts";
import { affineBits, ggmlFormats, type QuantizedFormat } from "../../src/quant/formats.ts";
import type { QuantizedTensor } from "../../src/quant/quantized_tensor.ts";
import { randomWeights } from "./fixtures.ts";

export const wave = (rows: number, columns: number, step: number, scale = 1): Tensor =>
  fromArray(Float32Array.from({ length: rows * columns }, (_, at) => Math.sin(at * step + at * at) * scale)).reshape([
    rows,
    columns,
  ]);
export const numbers = (x: Tensor): Float64Array => Float64Array.from(x.dataSync() as ArrayLike<number>);

export const formats: readonly QuantizedFormat[] = [
  ...ggmlFormats,
  ...affineBits.flatMap((bits) => [true, false].map((symmetric) => ({ bits, groupSize: 64 as const, symmetric }))),
];

export const weightsOf = (format: QuantizedFormat, rows: number, columns: number): QuantizedTensor =>
  randomWeights(format, rows, columns, () =>
    quantize(wave(rows, columns, 0.37, 0.1), { ...(format as object), scaleDType: "float16" }),
  );

/**
 * Each element of x Wᵀ, or of x W, in float64, with the sum of the magnitudes of its terms; minimums of blocks are
 * separate terms.
 */
function oracle(x: Tensor, w: QuantizedTensor, isTransposed: boolean, lows?: Float64Array) {
  const [rows, columns] = w.shape as [number, number];
  const [terms, outs] = isTransposed ? [rows, columns] : [columns, rows];
  const [values, weights] = [numbers(x), numbers(withBackend("reference", () => dequantize(w, { dtype: "float32" })))];
  const weightAt = (term: number, out: number) => weights[isTransposed ? term * columns + out : out * columns + term];
  return Array.from({ length: (values.length / Math.max(terms, 1)) * outs }, (_, at) => {
    const [row, out] = [Math.floor(at / outs), at % outs];
    let [total, magnitude] = [0, 0];
    for (let term = 0; term < terms; term++) {
      const own = values[row * terms + term] * weightAt(term, out);
      total += own;
      magnitude += Math.abs(own) + 2 * Math.abs(values[row * terms + term] * (lows?.[out * columns + term] ?? 0));
    }
    return { total, magnitude };
  });
}

const roundings = { float32: 2 ** -24, float16: 2 ** -11, bfloat16: 2 ** -8 } as const;

/**
 * The largest ratio of an error to its bound: that of a sum in float32 (Higham and Mary, 2019), and one rounding of the
 * result.
 *
 * @param lows of each weight, if scale · level and low are summed separately: |scale · level| ≤ |value| + |low|
 */
export function worstRatio(
  got: Tensor,
  x: Tensor,
  w: QuantizedTensor,
  isTransposed = false,
  lows?: Float64Array,
): number {
  const terms = w.shape[isTransposed ? 0 : 1];
  const rounding = roundings[got.dtype as "float32"];
  const smallest = got.dtype === "float16" ? 2 ** -25 : 2 ** -149; // half a step of subnormal numbers
  const expected = oracle(x, w, isTransposed, lows);
  const values = numbers(got);
  expect(values.length).toBe(expected.length);
  const ratios = expected.map(({ total, magnitude }, at) => {
    const bound = 2 * Math.sqrt(terms) * roundings.float32 * magnitude + rounding * Math.abs(total) + smallest;
    return Math.abs(values[at] - total) / bound;
  });
  return Math.max(0, ...ratios);
}
