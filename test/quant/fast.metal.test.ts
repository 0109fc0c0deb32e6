/** Products of bytes on metal, compared with float64 products of the rounded x, and with exact sums of integers. */
import { describe, expect, test } from "bun:test";
import { metalContext } from "../../src/backend/metal/context.ts";
import type { DispatchCounters } from "../../src/backend/metal/report.ts";
import { environmentFlag } from "../../src/core/environment.ts";
import {
  codepaths,
  fromArray,
  quantize,
  quantizedMatmul,
  quantizedSwiglu,
  quantizeGgml,
  swiglu,
  type Tensor,
} from "../../src/index.ts";
import { formatName, type QuantizedFormat, scaleDTypes } from "../../src/quant/formats.ts";
import { type Projection, quantizedProjections } from "../../src/quant/matmul/projections.ts";
import { bytesIn } from "../io/bytes.ts";
import { checked, testVariants } from "../linalg/variants.ts";
import { blocksOf, on } from "./fixtures.ts";
import { numbers, wave, weightsOf } from "./products.ts";
import { ratioOf, rounded, withLevels } from "./rounded.ts";

const fast = { precision: "fast" } as const;
const onMetal = <Result>(body: () => Result): Result => on("metal", body);
const as = (x: Tensor, dtype: (typeof scaleDTypes)[number]): Tensor => on("reference", () => x.to(dtype));
const hex = (x: Tensor): string => Buffer.from(bytesIn(x)).toString("hex");
const row = (size: number): Tensor => wave(1, size, 0.7).reshape([size]);

/** Uniform on [0, 1): a linear congruence. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const pathsOfBytes = (): number =>
  codepaths().reduce((sum, { reason, calls }) => sum + (reason.startsWith("bytes: ") ? calls : 0), 0);

/** Runs products under the checker, and fails unless each multiplies bytes. */
function ofBytes<Result>(products: number, body: () => Result): Result {
  const before = pathsOfBytes();
  const result = checked(() => onMetal(body));
  expect(pathsOfBytes() - before).toBe(products);
  return result;
}

function expectFormula(format: QuantizedFormat, rows: number, columns: number, x: Tensor): void {
  const w = weightsOf(format, rows, columns);
  const where = `${formatName(format)}, ${x.describe()} times ${rows} rows`;
  const y = ofBytes(1, () => quantizedMatmul(x, w, fast));
  expect([where, y.dtype, ratioOf(y, x, w) <= 1]).toEqual([where, x.dtype, true]);
}

/** Weights q8_0 with scales of 1, and whole numbers as x, whose scales are 1 too: each sum is a whole number. */
function wholeNumbers(count: number, rows: number, columns: number, next: () => number) {
  const levels = Int8Array.from({ length: rows * columns }, () => Math.floor(next() * 256) - 128);
  const values = Float32Array.from({ length: count * columns }, (_, at) =>
    at % 32 === 0 ? 127 : Math.floor(next() * 255) - 127,
  );
  const bytes = new Uint8Array((rows * columns * 34) / 32);
  for (let block = 0; block < bytes.length / 34; block++) {
    bytes[block * 34 + 1] = 0x3c; // 1 in float16
    bytes.set(new Uint8Array(levels.buffer, block * 32, 32), block * 34 + 2);
  }
  const sums = Array.from({ length: count }, (_, i) =>
    Array.from({ length: rows }, (_, j) => {
      let sum = 0;
      for (let k = 0; k < columns; k++) sum += values[i * columns + k] * levels[j * columns + k];
      return sum;
    }),
  );
  return { x: fromArray(values, [count, columns]), w: blocksOf("q8_0", rows, bytes), sums };
}

describe.skipIf(environmentFlag("ORCHARD_SKIP_METAL"))("products of bytes on metal", () => {
  test("every format, at the edges of tiles, equals the formula, checked", () => {
    for (const format of withLevels) expectFormula(format, 69, 256, wave(33, 256, 1.3));
  });

  test("the large tiles, in every dtype, equal the formula, checked", () => {
    for (const [format, dtype] of [
      ["q5_1", "float32"],
      ["q6_K", "float16"],
      [{ bits: 4, groupSize: 64, symmetric: false }, "bfloat16"],
    ] as const)
      expectFormula(format, 1990, 256, as(wave(67, 256, 0.9), dtype));
  });

  test("drawn sizes equal the formula, checked", () => {
    const next = random(330);
    const between = (low: number, high: number) => low + Math.floor(next() * (high - low + 1));
    const drawn = ["q4_0", "q8_0", "iq4_nl", "mxfp4", { bits: 3, groupSize: 32, symmetric: true }] as const;
    for (let at = 0; at < 12; at++) {
      const columns = 32 * between(1, 11);
      const values = wave(between(100, 170), columns, next());
      const format = drawn[between(0, drawn.length - 1)];
      const w = typeof format === "string" ? quantizeGgml(values, format) : quantize(values, format);
      const x = as(wave(between(5, 80), columns, next()), scaleDTypes[between(0, 2)]);
      const y = ofBytes(1, () => quantizedMatmul(x, w, fast));
      const where = `${formatName(format)}, ${x.describe()} times ${w.shape[0]} rows`;
      expect([where, ratioOf(y, x, w) <= 1]).toEqual([where, true]);
    }
  });

  test("sums of whole numbers are exact, and those of cpu, checked", () => {
    const next = random(331);
    for (const [count, rows, columns] of [
      [5, 65, 32],
      [34, 131, 416],
      [65, 2049, 64],
    ] as const) {
      const { x, w, sums } = wholeNumbers(count, rows, columns, next);
      const y = ofBytes(1, () => quantizedMatmul(x, w, fast));
      expect(y.toArray()).toEqual(sums);
      expect(on("cpu", () => quantizedMatmul(x, w, fast)).toArray()).toEqual(sums);
    }
  });

  test("the largest levels of x and weights are exact, checked", () => {
    const x = fromArray(new Float32Array(6 * 1024).fill(127), [6, 1024]);
    const bytes = new Uint8Array(70 * 1024).fill(255);
    const words = fromArray(new Uint32Array(bytes.buffer), [70, 256]);
    const w = quantize(wave(70, 1024, 0.3), { bits: 8, groupSize: 32 });
    const ones = fromArray(new Float32Array(70 * 32).fill(1), [70, 32]);
    const zeros = fromArray(new Float32Array(70 * 32), [70, 32]);
    Object.assign(w.parts, { packed: words, scales: ones, biases: zeros });
    const y = ofBytes(1, () => quantizedMatmul(x, w, fast));
    expect(new Set(numbers(y))).toEqual(new Set([Math.fround(1024 * 127 * 255)]));
  });

  test("a row with a value that is not finite gives NaN, and no other does, checked", () => {
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])
      for (const format of ["q4_0", "q4_1"] as const) {
        const values = Float32Array.from({ length: 7 * 96 }, (_, at) => (at === 96 + 70 ? bad : 1));
        const w = quantizeGgml(wave(70, 96, 0.3), format);
        const y = ofBytes(1, () => quantizedMatmul(fromArray(values, [7, 96]), w, fast));
        const finite = (y.toArray() as number[][]).map((own) => own.every(Number.isFinite));
        expect(finite).toEqual(finite.map((_, at) => at !== 1));
        expect((y.toArray() as number[][])[1].every(Number.isNaN)).toBe(true);
      }
  });

  test("x is rounded to the same bits as on cpu, checked", () => {
    const size = 96;
    const identity = new Uint8Array((size * size * 34) / 32);
    for (let block = 0; block < identity.length; block += 34) identity[block + 1] = 0x3c;
    for (let at = 0; at < size; at++) identity[((at * size) / 32 + Math.floor(at / 32)) * 34 + 2 + (at % 32)] = 1;
    const w = blocksOf("q8_0", size, identity);
    const rows: readonly ((at: number) => number)[] = [
      (at) => Math.sin(at * 1.7) * 10 ** ((at % 7) - 3),
      (at) => (at % 32 === 0 ? 127 : (at % 32) - 15.5), // halves, which go to even
      (at) => Math.fround((at % 2 ? -1 : 1) * 3.4e38 * ((at % 5) / 5)),
      (at) => 127 * 2 ** -126 * ((at % 3) - 1), // the smallest scale
      () => 0,
    ];
    const values = rows.flatMap((value) => Array.from({ length: size }, (_, at) => value(at)));
    const x = fromArray(Float32Array.from(values), [rows.length, size]);
    const got = ofBytes(1, () => quantizedMatmul(x, w, fast));
    expect(hex(got.add(0))).toBe(hex(as(rounded(x), "float32").add(0)));
    expect(hex(got.add(0))).toBe(hex(on("cpu", () => quantizedMatmul(x, w, fast)).add(0)));
  });

  test("x of any strides is rounded in place, with a bias, checked", () => {
    const w = weightsOf("q4_K", 130, 256);
    const dense = onMetal(() => wave(256, 18, 0.6).mul(1));
    const stepped = onMetal(() => wave(9, 514, 0.6).mul(1)).slice(1, { start: 1, end: 513, step: 2 });
    for (const x of [dense.transpose(0, 1), dense.reshape([2, 128, 18]).reshape([256, 18]).transpose(0, 1), stepped]) {
      const copy = onMetal(() => x.contiguous());
      const [got, expected] = ofBytes(2, () => [x, copy].map((each) => quantizedMatmul(each, w, fast)));
      expect(hex(got)).toBe(hex(expected));
    }
    const batched = onMetal(() => wave(256, 18, 0.6).mul(1).reshape([2, 128, 18])).transpose(1, 2);
    const narrow = weightsOf({ bits: 4, groupSize: 64, symmetric: false }, 130, 128);
    const [got, expected] = ofBytes(2, () =>
      [batched, batched.contiguous()].map((x) => quantizedMatmul(x, narrow, { ...fast, bias: row(130) })),
    );
    expect(hex(got)).toBe(hex(expected));
  });

  test("gated products have the bits of two products, checked", () => {
    for (const [format, dtype, count, rows] of [
      ["q4_0", "float16", 9, 131],
      ["q6_K", "float32", 40, 70],
      ["q4_K", "bfloat16", 65, 1030],
    ] as const) {
      const [gate, up] = [weightsOf(format, rows, 256), weightsOf(format, rows, 256)];
      const x = as(wave(count, 256, 1.1), dtype);
      const [gateBias, upBias] = [as(row(rows), dtype), as(row(rows), dtype)];
      const got = ofBytes(1, () => quantizedSwiglu(x, gate, up, { ...fast, gateBias, upBias }));
      const [first, second] = ofBytes(2, () => [
        quantizedMatmul(x, gate, { ...fast, bias: gateBias }),
        quantizedMatmul(x, up, { ...fast, bias: upBias }),
      ]);
      expect(hex(got)).toBe(hex(onMetal(() => swiglu(first, second))));
    }
  });

  test("three products that share the rounded x have the bits of three calls, checked", () => {
    const all = (["q4_K", { bits: 4, groupSize: 64, symmetric: false }, "q6_K"] as const).map((format, at) => ({
      weight: weightsOf(format, [300, 12, 130][at], 256), // the second is exact: too few rows
      bias: at === 0 ? row(300) : null,
    })) as unknown as [Projection, Projection, Projection];
    const x = wave(11, 256, 1.3);
    const got = ofBytes(2, () => quantizedProjections(x, all, "fast"));
    const expected = ofBytes(2, () => all.map(({ weight, bias }) => quantizedMatmul(x, weight, { ...fast, bias })));
    expect(got.map(hex)).toEqual(expected.map(hex));
  });
  testVariants(import.meta.path, "whole numbers are exact.*checked$|drawn sizes.*checked$|no other does, checked$");

  test("the product is exact where bytes do not move less, and codepaths() gives the reason", () => {
    const reasons = () => codepaths().flatMap(({ reason, backend }) => (backend === "metal" ? [reason] : []));
    for (const [rows, count, reason] of [
      [200, 4, "exact: 4 or fewer rows of x are too few"],
      [20, 7, "exact: with so few rows of weights, rounding x moves more memory than bytes save"],
    ] as const) {
      const [x, w] = [wave(count, 64, 0.5), quantizeGgml(wave(rows, 64, 0.2), "q4_0")];
      const [exact, own] = onMetal(() => [quantizedMatmul(x, w), quantizedMatmul(x, w, fast)]);
      expect(hex(own)).toBe(hex(exact));
      expect(reasons()).toContain(reason);
    }
  });

  test("bytes move less memory than the exact product, as counted", () => {
    const context = metalContext();
    const [count, rows, columns] = [128, 1024, 256];
    const moved = (body: () => Tensor): number => {
      context.wait();
      context.report({ clear: true });
      context.configure("count", true);
      onMetal(body);
      context.wait();
      context.configure("count", false);
      const all: readonly DispatchCounters[] = context.report({ clear: true }).dispatches;
      return all.reduce((sum, { counters }) => sum + counters.device_bytes_read + counters.device_bytes_written, 0);
    };
    const x = as(wave(count, columns, 0.5), "float16");
    const tiles = { x: rows / 64, w: count / 64 };
    for (const [w, sums] of [
      [weightsOf("q8_0", rows, columns), 0],
      [weightsOf("q4_0", rows, columns), 0],
      [weightsOf("q4_K", rows, columns), 4],
    ] as const) {
      const [exact, bytes] = [undefined, fast].map((options) => moved(() => quantizedMatmul(x, w, options)));
      const read = count * columns * (2 + (1 + 8 / 32) + (1 + (4 + sums) / 32) * tiles.x);
      expect(bytes).toBe(read + w.byteLength * tiles.w + count * rows * 2);
      expect(bytes).toBeLessThan(exact);
    }
  });
});
