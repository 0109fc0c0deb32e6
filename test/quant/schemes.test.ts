/** Products with quantized weights in four schemes, compared with float64. */
import { describe, expect, test } from "bun:test";
import { ArgumentError, DTypeError, type OrchardError, ShapeError } from "../../src/core/errors.ts";
import {
  dequantize,
  Generator,
  matmulPerGroup,
  matmulPerTensor,
  matmulPremultiplied,
  matmulSmooth,
  ones,
  type QuantizeOptions,
  quantize,
  quantizeGgml,
  quantizePerTensor,
  randn,
  smoothQuantize,
  type Tensor,
  tensor,
  zeros,
} from "../../src/index.ts";
import { affineBits } from "../../src/quant/formats.ts";
import { on, places } from "./fixtures.ts";

const [ROWS, COLUMNS, COUNT] = [24, 128, 6];
const normal = (shape: number[], seed: number): Tensor => randn(shape, { generator: new Generator(seed) });
const numbers = (x: Tensor): number[] => Array.from(x.dataSync() as ArrayLike<number>, Number);
const w = normal([ROWS, COLUMNS], 1);
const x = normal([2, 3, COLUMNS], 2);

/** x Wᵀ in float64, and the sums of the magnitudes of its terms. */
function products(a: readonly number[], b: readonly number[]) {
  const [exact, sizes] = [new Float64Array(COUNT * ROWS), new Float64Array(COUNT * ROWS)];
  for (let at = 0; at < exact.length; at++)
    for (let k = 0; k < COLUMNS; k++) {
      const term = a[Math.floor(at / ROWS) * COLUMNS + k] * b[(at % ROWS) * COLUMNS + k];
      exact[at] += term;
      sizes[at] += Math.abs(term);
    }
  return { exact, sizes };
}

/** The rounding of float32 sums: 2 √in · 2⁻²⁴ of the terms, in each of the partial sums that a scheme adds. */
function expectExact(got: Tensor, weights: readonly number[], terms = 1): void {
  const { exact, sizes } = products(numbers(x), weights);
  expect(got.shape).toEqual([2, 3, ROWS]);
  const own = numbers(got);
  for (const [at, value] of own.entries()) {
    const bound = 2 * Math.sqrt(COLUMNS) * 2 ** -24 * terms * sizes[at];
    expect([at, Math.abs(value - exact[at]) <= bound]).toEqual([at, true]);
  }
}

describe.each(places)("schemes of quantization on %s", (backend) => {
  test.each(affineBits)("with one scale and %d bits, the product equals that with dequantized levels", (bits) => {
    on(backend, () => {
      const own = quantizePerTensor(w, { bits });
      const values = numbers(own.levels).map((level) => own.scale * (level - own.zero));
      // here the terms are levels, which are larger than their differences from the zero point
      expectExact(matmulPerTensor(x, own), values, 2 ** bits);
      const exact = numbers(w);
      const worst = Math.max(...values.map((value, at) => Math.abs(value - exact[at])));
      expect(worst).toBeLessThanOrEqual(own.scale * (1 + 1e-6)); // half a step for the level, half for the zero
    });
  });

  test.each<QuantizeOptions>([
    { bits: 4, groupSize: 32 },
    { bits: 3, groupSize: 64 },
    { bits: 8, groupSize: 128 },
    { bits: 4, groupSize: 32, symmetric: true },
    { bits: 5, groupSize: 32, scaleDType: "float16" },
  ])("products by group, and with scales applied before, equal the exact product: %p", (options) => {
    on(backend, () => {
      const own = quantize(w, options);
      const values = numbers(dequantize(own, { dtype: "float32" }));
      expectExact(matmulPerGroup(x, own), values, 2 ** options.bits!);
      expectExact(matmulPremultiplied(x, own), values, 2);
    });
  });

  test("SmoothQuant is within the rounding of 8 bits, also for columns that are far larger than the others", () => {
    on(backend, () => {
      const spread = tensor(Array.from({ length: COLUMNS }, (_, at) => (at % 16 === 3 ? 60 : 1)));
      const own = x.mul(spread);
      const ranges = own.abs().amax({ dim: [0, 1] });
      const { exact } = products(numbers(own), numbers(w));
      const error = (alpha: number) => {
        const got = numbers(matmulSmooth(own, smoothQuantize(w, ranges, { alpha })));
        return Math.sqrt(exact.reduce((sum, value, at) => sum + (value - got[at]) ** 2, 0));
      };
      const size = Math.sqrt(exact.reduce((sum, value) => sum + value * value, 0));
      expect(error(0.5) / size).toBeLessThan(0.02);
      expect(error(0.5)).toBeLessThan(error(0)); // without smoothing of x
    });
  });

  test("SmoothQuant's levels are whole numbers, summed exactly", () => {
    on(backend, () => {
      const own = smoothQuantize(w, ones([COLUMNS]));
      const [levels, scales, smoothing] = [own.levels, own.scales, own.smoothing].map(numbers);
      const rows = numbers(x);
      const got = numbers(matmulSmooth(x, own));
      for (const [at, value] of got.entries()) {
        const [row, column] = [Math.floor(at / ROWS), at % ROWS];
        const smoothed = smoothing.map((s, k) => Math.fround(rows[row * COLUMNS + k] / s));
        const most = Math.max(...smoothed.map(Math.abs));
        let sum = 0;
        for (let k = 0; k < COLUMNS; k++) sum += Math.round((smoothed[k] / most) * 127) * levels[column * COLUMNS + k];
        const expected = (sum * most * scales[column]) / 127;
        const step = (most * scales[column]) / 127; // a tie may be rounded up or down, which changes one level
        expect(Math.abs(value - expected)).toBeLessThanOrEqual(127 * step + 1e-5);
      }
    });
  });

  test("zeros stay zeros in every scheme", () => {
    on(backend, () => {
      const none = zeros([ROWS, COLUMNS]);
      expect(numbers(matmulPerTensor(x, quantizePerTensor(none))).every((value) => value === 0)).toBe(true);
      expect(numbers(matmulSmooth(x, smoothQuantize(none, ones([COLUMNS])))).every((value) => value === 0)).toBe(true);
      const empty = matmulSmooth(zeros([2, COLUMNS]), smoothQuantize(w, zeros([COLUMNS])));
      expect(numbers(empty).every((value) => value === 0)).toBe(true);
    });
  });
});

describe("schemes reject invalid operands", () => {
  const call = (name: (...values: never[]) => unknown, ...values: unknown[]) => {
    try {
      (name as (...values: unknown[]) => unknown)(...values);
    } catch (error) {
      return error as OrchardError;
    }
    throw new Error("it was taken");
  };
  const affine = quantize(w);

  test("blocks, other sizes and dtypes, values that are not finite, and other objects are rejected", () => {
    expect(call(matmulPerGroup, x, quantizeGgml(w, "q4_0"))).toMatchObject({ code: "wrongFormat" });
    expect(call(matmulPremultiplied, x, quantizeGgml(w, "q4_0"))).toBeInstanceOf(ArgumentError);
    for (const name of [matmulPerGroup, matmulPremultiplied]) {
      expect(call(name, ones([2, 64]), affine)).toBeInstanceOf(ShapeError);
      expect(call(name, x.to("float16"), affine)).toBeInstanceOf(DTypeError);
    }
    expect(call(matmulPerTensor, ones([2, 64]), quantizePerTensor(w))).toBeInstanceOf(ShapeError);
    expect(call(matmulPerTensor, x, { ...quantizePerTensor(w) })).toMatchObject({ code: "invalidOperand" });
    expect(call(matmulSmooth, ones([2, 64]), smoothQuantize(w, ones([COLUMNS])))).toBeInstanceOf(ShapeError);
    expect(call(quantizePerTensor, ones([2]))).toMatchObject({ code: "wrongRank" });
    expect(call(quantizePerTensor, ones([2, 2], { dtype: "int32" }))).toBeInstanceOf(DTypeError);
    expect(call(quantizePerTensor, tensor([[1, Number.NaN]]))).toMatchObject({ code: "notFinite" });
    expect(call(quantizePerTensor, w, { bits: 7 })).toBeInstanceOf(ArgumentError);
    expect(call(smoothQuantize, w, ones([64]))).toBeInstanceOf(ShapeError);
    expect(call(smoothQuantize, w, ones([COLUMNS]).mul(-1))).toMatchObject({ code: "negativeRange" });
    expect(call(smoothQuantize, w, ones([COLUMNS]), { alpha: 2 })).toBeInstanceOf(ArgumentError);
  });
});
