/** Products with quantized weights, compared with float64 products of the dequantized weights. */
import { afterAll, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../src/backend/cpu/report.ts";
import { DTypeError, ShapeError } from "../../src/core/errors.ts";
import {
  backward,
  codepaths,
  dequantize,
  grad,
  matmulGgml,
  matmulInt4,
  memory,
  ones,
  quantize,
  quantizedMatmul,
  quantizedSwiglu,
  quantizeGgml,
  quantizeInt4,
  resetPeakMemory,
  sum,
  type Tensor,
  zeros,
} from "../../src/index.ts";
import { formatName, scaleDTypes } from "../../src/quant/formats.ts";
import { bytesIn } from "../io/bytes.ts";
import { on, places } from "./fixtures.ts";
import { formats, numbers, wave, weightsOf, worstRatio } from "./products.ts";

const { native } = cpuLibrary();
const { isa: initial, isas } = cpuInfo(native);
afterAll(() => configure(native, "isa", initial));

describe.each(formats.map((format) => [formatName(format), format] as const))("quantizedMatmul, %s", (_, format) => {
  const w = weightsOf(format, 19, 512);

  test.each(places)(
    "quantizedMatmul of one or more rows on %s equals the product with dequantized weights",
    (backend) => {
      for (const rows of [1, 2, 3, 4, 5, 9]) {
        const x = wave(rows, 512, 1.3);
        const got = on(backend, () => quantizedMatmul(x, w));
        expect([got.shape, got.dtype]).toEqual([[rows, 19], "float32"]);
        expect([rows, worstRatio(got, x, w) <= 1]).toEqual([rows, true]);
      }
    },
  );

  test.each(places)("the gradient of x on %s equals the product's", (backend) => {
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

describe.each(isas)("quantizedMatmul with %s", (isa) => {
  test("every format multiplies with its dequantized weights", () => {
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

  test("every format is unpacked to the reference's bits", () => {
    configure(native, "isa", isa);
    for (const format of formats)
      for (const columns of [256, 768]) {
        const w = weightsOf(format, 3, columns);
        const [expected, got] = (["reference", "cpu"] as const).map((backend) =>
          on(backend, () => bytesIn(dequantize(w))),
        );
        expect([formatName(format), Buffer.compare(got, expected)]).toEqual([formatName(format), 0]);
      }
  });

  test("sizes around those of tiles, and of the parts that are processed at once, are right", () => {
    configure(native, "isa", isa);
    const someFormats = ["q8_0", "q4_0", "q5_1", "mxfp4", { bits: 4, groupSize: 32 }] as const;
    for (const [rows, columns] of [
      [1, 32],
      [7, 1024],
      [8, 1056],
      [17, 2080],
      [33, 64],
    ] as const)
      for (const format of someFormats) {
        const values = wave(rows, columns, 0.3);
        const w = typeof format === "string" ? quantizeGgml(values, format) : quantize(values, format);
        for (const count of [1, 4, 6]) {
          const x = wave(count, columns, 0.9);
          const got = on("cpu", () => quantizedMatmul(x, w));
          expect([formatName(w.format), count, worstRatio(got, x, w) <= 1]).toEqual([
            formatName(w.format),
            count,
            true,
          ]);
        }
        const [expected, got] = (["reference", "cpu"] as const).map((place) => on(place, () => bytesIn(dequantize(w))));
        expect([formatName(w.format), Buffer.compare(got, expected)]).toEqual([formatName(w.format), 0]);
      }
  });
});

test("products of many rows of x on cpu, which unpack weights in two blocks, are right", () => {
  const [x, cotangent] = [wave(16, 2048, 1.3), wave(16, 1100, 0.7)];
  const w = quantizeGgml(wave(1100, 2048, 0.2), "q8_0");
  x.requiresGrad = true;
  const y = on("cpu", () => quantizedMatmul(x, w));
  const [own] = on("cpu", () => grad([y], [x], { gradOutputs: [cotangent] }));
  expect(worstRatio(y.detach(), x.detach(), w)).toBeLessThanOrEqual(1);
  expect(worstRatio(own, cotangent, w, true)).toBeLessThanOrEqual(1);
});

test.each(places)("x with two axes of any strides gives the bits of a copy, on %s", (backend) => {
  const w = quantizeInt4(wave(6, 64, 0.2));
  for (const dtype of scaleDTypes) {
    const stored = on("reference", () => wave(130, 9, 0.6).to(dtype));
    const turned = stored.slice(0, { start: 1, end: 129, step: 2 }).transpose(0, 1);
    for (const x of [turned, turned.flip(1), turned.slice(0, { start: 2, end: 3 }).expand([5, 64])]) {
      const [got, expected] = on(backend, () => [quantizedMatmul(x, w), quantizedMatmul(x.contiguous(), w)]);
      expect(got.toArray()).toEqual(expected.toArray());
    }
  }
});

test.each(places)("x with three axes is not copied if two strides describe its rows, on %s", (backend) => {
  const copies = () => codepaths().reduce((sum, { operation, calls }) => sum + (operation === "copy" ? calls : 0), 0);
  const w = quantizeInt4(wave(6, 64, 0.2));
  const stored = on(backend, () =>
    wave(2 * 64, 9, 0.6)
      .mul(1)
      .reshape([2, 64, 9]),
  );
  const rows = on(backend, () =>
    wave(2 * 3 * 4, 64, 0.6)
      .mul(1)
      .reshape([2, 3, 4, 64]),
  );
  for (const [x, count] of [
    [stored.transpose(1, 2), 0], // the transposed result of a product
    [stored.transpose(1, 2).slice(1, { start: 1, end: 9, step: 2 }).flip(0), 0],
    [stored.permute([2, 0, 1]), 0],
    [rows.transpose(0, 1), 1], // three axes of rows, none of which can be merged
    [rows.permute([2, 0, 1, 3]), 0],
    [rows.slice(2, { start: 1, end: 2 }).transpose(0, 1), 0],
  ] as const) {
    const before = copies();
    const got = on(backend, () => [quantizedMatmul(x, w), quantizedSwiglu(x, w, w)]);
    expect([x.shape, copies() - before]).toEqual([x.shape, 2 * count]);
    const dense = on(backend, () => x.contiguous());
    const expected = on(backend, () => [quantizedMatmul(dense, w), quantizedSwiglu(dense, w, w)]);
    expect(got.map((y) => y.toArray())).toEqual(expected.map((y) => y.toArray()));
  }
});

test("many rows of float32 with one stride are multiplied in place on cpu", () => {
  const w = quantizeInt4(wave(6, 256, 0.2));
  const x = on("cpu", () => wave(256, 4096, 0.6).mul(1).transpose(0, 1));
  resetPeakMemory();
  const before = memory().host.peakBytes;
  on("cpu", () => quantizedMatmul(x, w));
  expect(memory().host.peakBytes - before).toBeLessThan((4096 * 256 * 4) / 2);
  const some = x.slice(0, { start: 5, end: 45 });
  expect(
    worstRatio(
      on("cpu", () => quantizedMatmul(some, w)),
      some,
      w,
    ),
  ).toBeLessThanOrEqual(1);
});

test("products have the same bits on any number of threads", () => {
  const rows = [1, 4, 7, 16].map((count) => wave(count, 512, 0.9));
  for (const format of ["q4_0", "q4_K", "f16", { bits: 3, groupSize: 32, symmetric: true }] as const) {
    const w = weightsOf(format, 333, 512);
    const bits = [1, 2, 5].map((count) => {
      configure(native, "threads", String(count));
      return on("cpu", () => rows.map((x) => Buffer.from(bytesIn(quantizedMatmul(x, w))).toString("hex")));
    });
    expect(new Set(bits.map((own) => own.join())).size).toBe(1);
  }
  configure(native, "threads", "auto");
});

test.each(places)("rows of f16 that end within a part are right, on %s", (backend) => {
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

test.each(places)("x may have every dtype, any axes and any strides, on %s", (backend) => {
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

test.each(places)("empty operands are accepted, on %s", (backend) => {
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
    return [grad([sum(own.mul(own))], [x])[0], own];
  });
  // The gradient of Σ y² is 2 x Wᵀ W, and the gradient of the sum of its squares 8 x (Wᵀ W)².
  const dense = on("reference", () => dequantize(w).to("float64"));
  const [wide, gram] = on("reference", () => [x.detach().to("float64"), dense.transpose(0, 1).matmul(dense)] as const);
  const [once, twice] = on("reference", () => [
    numbers(wide.matmul(gram).mul(2)),
    numbers(wide.matmul(gram).matmul(gram).mul(8)),
  ]);
  const worst = (got: Tensor, expected: Float64Array) =>
    Math.max(...numbers(got).map((value, at) => Math.abs(value - expected[at]))) / Math.max(...expected.map(Math.abs));
  expect(worst(first, once)).toBeLessThan(1e-5);
  expect(worst(second, twice)).toBeLessThan(1e-5);
});

describe("products reject invalid operands", () => {
  const w = quantizeInt4(ones([4, 64]));

  test("x of another width, and scalars, are rejected", () => {
    expect(() => quantizedMatmul(ones([2, 32]), w)).toThrow(ShapeError);
    expect(() => quantizedMatmul(ones([2, 32]), w)).toThrow("expected x to have 64 values along its last axis");
    expect(() => quantizedMatmul(ones([]), w)).toThrow(ShapeError);
  });

  test("weights that are not a matrix are rejected", () => {
    expect(() => quantizedMatmul(ones([64]), quantizeInt4(ones([2, 4, 64])))).toThrow("expected w to be a matrix");
  });

  test("x of another dtype is rejected", () => {
    expect(() => quantizedMatmul(ones([2, 64]).to("float64"), w)).toThrow(DTypeError);
    expect(() => quantizedMatmul(ones([2, 64]).to("int32"), w)).toThrow(DTypeError);
  });

  test("weights of another format than the function's are rejected", () => {
    expect(() => matmulGgml(ones([2, 64]), w)).toThrow("expected weights in GGML's blocks, got affine 4 bits");
    expect(() => matmulInt4(ones([2, 64]), quantizeGgml(ones([4, 64]), "q4_0"))).toThrow("expected affine weights");
  });
});
