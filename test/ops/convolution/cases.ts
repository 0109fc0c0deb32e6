/** Convolutions of one case compared with the sums that define them, in float64: the result and both gradients. */
import { expect } from "bun:test";
import { conv2d, full, grad, type Tensor, tensor, toDType, withBackend, withStrict } from "../../../src/index.ts";

export interface Case {
  readonly x: readonly [batch: number, channels: number, height: number, width: number];
  readonly weight: readonly [outputs: number, channels: number, rows: number, columns: number];
  readonly stride: number;
  readonly padding: number;
  readonly groups: number;
  readonly dilation?: number;
}

/** The relative error of rounding a result once; errors of sums in float32 and float64 have a separate bound. */
const rounding = { float32: 0, float64: 0, float16: 2 ** -11, bfloat16: 2 ** -8 } as const;

const wave = (shape: readonly number[], step: number, dtype: keyof typeof rounding): Tensor => {
  const size = shape.reduce((product, own) => product * own, 1);
  const numbers = Float64Array.from({ length: size }, (_, at) => Math.sin(at * step + 1));
  return tensor(numbers, { shape, dtype, requiresGrad: true });
};

/** The elements, as float32 or float64. */
const numbersOf = (x: Tensor): Float32Array =>
  toDType(x.detach(), x.dtype === "float64" ? "float64" : "float32").dataSync() as Float32Array;

/** Calls back for each product of a sum y += x · w, with the positions of its three elements. */
function forEachProduct(
  { x, weight, stride, padding, groups, dilation = 1 }: Case,
  [lines, places]: readonly [number, number],
  add: (ofX: number, ofWeight: number, ofY: number) => void,
): void {
  const [batch, channels, height, width] = x;
  const [outputs, own, rows, columns] = weight;
  for (let n = 0; n < batch; n++)
    for (let o = 0; o < outputs; o++)
      for (let c = 0; c < own; c++) {
        const channel = Math.floor(o / (outputs / groups)) * own + c;
        for (let row = 0; row < rows; row++)
          for (let column = 0; column < columns; column++) {
            const ofWeight = ((o * own + c) * rows + row) * columns + column;
            for (let i = 0; i < lines; i++) {
              const y = i * stride + row * dilation - padding;
              if (y < 0 || y >= height) continue;
              const line = ((n * channels + channel) * height + y) * width;
              for (let j = 0; j < places; j++) {
                const z = j * stride + column * dilation - padding;
                if (z >= 0 && z < width) add(line + z, ofWeight, ((n * outputs + o) * lines + i) * places + j);
              }
            }
          }
      }
}

export function checkCase(backend: "cpu" | "metal", own: Case, dtype: keyof typeof rounding): void {
  withStrict(true, () =>
    withBackend(backend, () => {
      const [x, weight] = [wave(own.x, 0.7, dtype), wave(own.weight, 0.3, dtype)];
      const { stride, padding, groups, dilation = 1 } = own;
      for (const each of [x, weight]) full(each.shape, Number.NaN, { dtype }).dispose(); // gradients reuse this memory
      const y = conv2d(x, weight, { stride, padding, groups, dilation });
      const g = wave(y.shape, 0.9, dtype);
      const gradients = grad([y], [x, weight], { gradOutputs: [g] });
      const [ofX, ofWeight, ofG] = [x, weight, g].map(numbersOf);
      const sums = [y.size, x.size, weight.size].map((size) => new Float64Array(size));
      const sizes = [y.size, x.size, weight.size].map((size) => new Float64Array(size));
      const add = (which: number, at: number, term: number): void => {
        sums[which][at] += term;
        sizes[which][at] += Math.abs(term);
      };
      forEachProduct(own, y.shape.slice(2) as [number, number], (at, place, result) => {
        add(0, result, ofX[at] * ofWeight[place]);
        add(1, at, ofG[result] * ofWeight[place]);
        add(2, place, ofG[result] * ofX[at]);
      });
      const epsilon = dtype === "float64" ? 2 ** -53 : 2 ** -24;
      for (const [which, found] of [y, ...gradients].entries()) {
        const data = numbersOf(found);
        // Each rounding of a sum of k terms is at most ε times the partial sum: √k ε in total, if they are random.
        const worst = data.reduce((most, value, at) => {
          const ofSums = epsilon * (8 + 4 * Math.sqrt(own.weight[0] * own.weight[1])) * (sizes[which][at] + 1e-6);
          const allowed = ofSums + 1.01 * rounding[dtype] * Math.abs(sums[which][at]);
          return Math.max(most, Math.abs(value - sums[which][at]) / allowed);
        }, 0);
        expect([which, dtype, worst < 1]).toEqual([which, dtype, true]);
      }
    }),
  );
}
