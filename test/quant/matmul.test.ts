/** Products with quantised weights, against float64 products of what the weights dequantise to. */
import { afterAll, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../src/backend/cpu/report.ts";
import { withBackend } from "../../src/backend/policy.ts";
import { DTypeError, ShapeError } from "../../src/core/errors.ts";
import {
  backward,
  dequantize,
  fromArray,
  grad,
  matmulGgml,
  matmulInt4,
  ones,
  quantize,
  quantizedMatmul,
  quantizeGgml,
  quantizeInt4,
  sum,
  type Tensor,
  zeros,
} from "../../src/index.ts";
import { affineBits, formatName, ggmlFormats, type QuantizedFormat, scaleDTypes } from "../../src/quant/formats.ts";
import type { QuantizedTensor } from "../../src/quant/quantized_tensor.ts";
import { on, places, randomWeights } from "./fixtures.ts";

const { native } = cpuLibrary();
const { isa: initial, isas } = cpuInfo(native);
afterAll(() => configure(native, "isa", initial));

const wave = (rows: number, columns: number, step: number, scale = 1): Tensor =>
  fromArray(Float32Array.from({ length: rows * columns }, (_, at) => Math.sin(at * step + at * at) * scale)).reshape([
    rows,
    columns,
  ]);
const numbers = (x: Tensor): Float64Array => Float64Array.from(x.dataSync() as ArrayLike<number>);

const formats: readonly QuantizedFormat[] = [
  ...ggmlFormats,
  ...affineBits.flatMap((bits) => [true, false].map((symmetric) => ({ bits, groupSize: 64 as const, symmetric }))),
];

const weightsOf = (format: QuantizedFormat, rows: number, columns: number): QuantizedTensor =>
  randomWeights(format, rows, columns, () =>
    quantize(wave(rows, columns, 0.37, 0.1), { ...(format as object), scaleDType: "float16" }),
  );

/** Each element of x Wᵀ, or of x W, in float64, with the sum of the magnitudes of its terms. */
function oracle(x: Tensor, w: QuantizedTensor, isTransposed: boolean) {
  const [rows, columns] = w.shape as [number, number];
  const [terms, outs] = isTransposed ? [rows, columns] : [columns, rows];
  const [values, weights] = [numbers(x), numbers(withBackend("reference", () => dequantize(w, { dtype: "float32" })))];
  const weightAt = (term: number, out: number) => weights[isTransposed ? term * columns + out : out * columns + term]!;
  return Array.from({ length: (values.length / Math.max(terms, 1)) * outs }, (_, at) => {
    const [row, out] = [Math.floor(at / outs), at % outs];
    let [total, magnitude] = [0, 0];
    for (let term = 0; term < terms; term++) {
      const own = values[row * terms + term]! * weightAt(term, out);
      total += own;
      magnitude += Math.abs(own);
    }
    return { total, magnitude };
  });
}

const roundings = { float32: 2 ** -24, float16: 2 ** -11, bfloat16: 2 ** -8 } as const;

/** The worst error over its bound: that of a sum in float32 (Higham and Mary, 2019), and one rounding of the result. */
function worstRatio(got: Tensor, x: Tensor, w: QuantizedTensor, isTransposed = false): number {
  const terms = w.shape[isTransposed ? 0 : 1]!;
  const rounding = roundings[got.dtype as "float32"];
  const smallest = got.dtype === "float16" ? 2 ** -25 : 2 ** -149; // half a step of subnormal numbers
  const expected = oracle(x, w, isTransposed);
  const values = numbers(got);
  expect(values.length).toBe(expected.length);
  const ratios = expected.map(({ total, magnitude }, at) => {
    const bound = 2 * Math.sqrt(terms) * roundings.float32 * magnitude + rounding * Math.abs(total) + smallest;
    return Math.abs(values[at]! - total) / bound;
  });
  return Math.max(0, ...ratios);
}

describe.each(formats.map((format) => [formatName(format), format] as const))("%s", (_, format) => {
  const w = weightsOf(format, 19, 512);

  test.each(places)("quantizedMatmul on %s, of one row to many", (backend) => {
    for (const rows of [1, 2, 3, 4, 5, 9]) {
      const x = wave(rows, 512, 1.3);
      const got = on(backend, () => quantizedMatmul(x, w));
      expect([got.shape, got.dtype]).toEqual([[rows, 19], "float32"]);
      expect([rows, worstRatio(got, x, w) <= 1]).toEqual([rows, true]);
    }
  });

  test.each(places)("the gradient of x on %s", (backend) => {
    const x = wave(3, 512, 1.3);
    x.requiresGrad = true;
    const cotangent = wave(3, 19, 0.7);
    const got = on(backend, () => {
      backward(sum(quantizedMatmul(x, w).mul(cotangent)));
      return x.grad!;
    });
    expect(got.shape).toEqual([3, 512]);
    expect(worstRatio(got, cotangent, w, true)).toBeLessThanOrEqual(1);
  });
});

describe.each(isas)("with %s", (isa) => {
  test("every format gives what the weights say", () => {
    configure(native, "isa", isa);
    for (const format of formats) {
      const [x, w] = [wave(5, 256, 1.1), weightsOf(format, 9, 256)];
      const ratio = worstRatio(
        on("cpu", () => quantizedMatmul(x, w)),
        x,
        w,
      );
      expect([formatName(format), ratio <= 1]).toEqual([formatName(format), true]);
    }
  });

  test("sizes around those of tiles", () => {
    configure(native, "isa", isa);
    for (const [rows, columns] of [
      [1, 32],
      [7, 1024],
      [8, 1056],
      [17, 2080],
      [33, 64],
    ] as const)
      for (const count of [1, 4, 6]) {
        const [x, w] = [wave(count, columns, 0.9), quantizeGgml(wave(rows, columns, 0.3), "q8_0")];
        expect(
          worstRatio(
            on("cpu", () => quantizedMatmul(x, w)),
            x,
            w,
          ),
        ).toBeLessThanOrEqual(1);
      }
  });
});

test.each(places)("rows of f16 that end within a part, on %s", (backend) => {
  for (const columns of [1, 31, 33, 300]) {
    const w = quantizeGgml(wave(5, columns, 0.4), "f16");
    for (const rows of [2, 6]) {
      const x = wave(rows, columns, 0.6);
      x.requiresGrad = true;
      const y = on(backend, () => quantizedMatmul(x, w));
      expect(worstRatio(y, x.detach(), w)).toBeLessThanOrEqual(1);
      on(backend, () => backward(sum(y)));
      expect(worstRatio(x.grad!, ones([rows, 5]), w, true)).toBeLessThanOrEqual(1);
    }
  }
});

test.each(places)("x in every dtype, of any axes and strides, on %s", (backend) => {
  const w = quantizeInt4(wave(6, 128, 0.2));
  for (const dtype of scaleDTypes) {
    const x = on("reference", () => wave(8, 128, 0.8).to(dtype));
    const got = on(backend, () => quantizedMatmul(x, w));
    expect(got.dtype).toBe(dtype);
    expect([dtype, worstRatio(got, x, w) <= 1]).toEqual([dtype, true]);
    const strided = x.reshape([2, 4, 128]).transpose(0, 1);
    const own = on(backend, () => matmulInt4(strided, w));
    expect(own.shape).toEqual([4, 2, 6]);
    expect(own.transpose(0, 1).reshape([8, 6]).toArray()).toEqual(got.toArray());
    const row = on(backend, () => quantizedMatmul(x.slice(0, { start: 3, end: 4 }).reshape([128]), w));
    expect(row.shape).toEqual([6]);
  }
});

test.each(places)("nothing to multiply, on %s", (backend) => {
  const w = quantizeGgml(ones([4, 64]), "q4_0");
  expect(on(backend, () => quantizedMatmul(zeros([0, 64]), w)).shape).toEqual([0, 4]);
  expect(on(backend, () => quantizedMatmul(zeros([3, 64]), quantizeGgml(zeros([0, 64]), "q4_0"))).shape).toEqual([
    3, 0,
  ]);
  const none = on(backend, () => quantizedMatmul(zeros([3, 0]), quantizeGgml(zeros([4, 0]), "q4_0")));
  expect(none.toArray()).toEqual([0, 0, 0].map(() => [0, 0, 0, 0]));
});

test.each(places)("gradients of second order reach x through the compressed weights, on %s", (backend) => {
  const w = quantizeInt4(wave(6, 64, 0.2));
  const x = wave(2, 64, 0.5);
  x.requiresGrad = true;
  const [second, first] = on(backend, () => {
    const y = quantizedMatmul(x, w);
    const [own] = grad([sum(y.mul(y))], [x], { createGraph: true });
    return [grad([sum(own!.mul(own!))], [x])[0]!, own!];
  });
  // of Σ y²: 2 x Wᵀ W; of the sum of its squares: 8 x (Wᵀ W)²
  const dense = on("reference", () => dequantize(w).to("float64"));
  const [wide, gram] = on("reference", () => [x.detach().to("float64"), dense.transpose(0, 1).matmul(dense)] as const);
  const [once, twice] = on("reference", () => [
    numbers(wide.matmul(gram).mul(2)),
    numbers(wide.matmul(gram).matmul(gram).mul(8)),
  ]);
  const worst = (got: Tensor, expected: Float64Array) =>
    Math.max(...numbers(got).map((value, at) => Math.abs(value - expected[at]!))) / Math.max(...expected.map(Math.abs));
  expect(worst(first, once)).toBeLessThan(1e-5);
  expect(worst(second, twice)).toBeLessThan(1e-5);
});

describe("refused are", () => {
  const w = quantizeInt4(ones([4, 64]));

  test("x of another width, and scalars", () => {
    expect(() => quantizedMatmul(ones([2, 32]), w)).toThrow(ShapeError);
    expect(() => quantizedMatmul(ones([2, 32]), w)).toThrow("expected x to have 64 values along its last axis");
    expect(() => quantizedMatmul(ones([]), w)).toThrow(ShapeError);
  });

  test("weights that are no matrix", () => {
    expect(() => quantizedMatmul(ones([64]), quantizeInt4(ones([2, 4, 64])))).toThrow("expected w to be a matrix");
  });

  test("x of another dtype", () => {
    expect(() => quantizedMatmul(ones([2, 64]).to("float64"), w)).toThrow(DTypeError);
    expect(() => quantizedMatmul(ones([2, 64]).to("int32"), w)).toThrow(DTypeError);
  });

  test("weights of another format than the function's", () => {
    expect(() => matmulGgml(ones([2, 64]), w)).toThrow("expected weights in GGML's blocks, got affine 4 bits");
    expect(() => matmulInt4(ones([2, 64]), quantizeGgml(ones([4, 64]), "q4_0"))).toThrow("expected affine weights");
  });
});
