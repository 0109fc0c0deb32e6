/**
 * Products of bfloat16 and float16 by instructions for these dtypes. Rounding that differs from float32 sums of widened
 * numbers shows which instructions ran; neither threads nor special values change results.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../../src/backend/cpu/report.ts";
import { Random } from "../../ops/samples.ts";
import { multiply } from "../../support/cpu-matmul.ts";
import { elementTypes } from "../../support/elements.ts";
import { repeats } from "../../support/repeats.ts";

const { native } = cpuLibrary();
const { isa: initial, isas } = cpuInfo(native);
afterAll(() => {
  configure(native, "isa", initial);
  configure(native, "threads", "auto");
});

type Dtype = "bfloat16" | "float16";
const size = 64; // large enough for these instructions

/** The bits of a (m x k) b (k x n), whose elements are functions of their positions. */
function product(
  dtype: Dtype,
  [m, n, k]: readonly [number, number, number],
  a: (row: number, step: number) => number,
  b: (step: number, column: number) => number,
  alpha = 1,
): NodeJS.TypedArray {
  const type = elementTypes[dtype];
  const matrix = (rows: number, columns: number, value: (row: number, column: number) => number) => {
    const storage = type.make(rows * columns);
    for (let at = 0; at < rows * columns; at++) type.write(storage, at, value(Math.floor(at / columns), at % columns));
    return { storage, offset: 0, rowStride: columns, columnStride: 1, batchStrides: [] };
  };
  const out = matrix(m, n, () => Number.NaN);
  multiply({ dtype, m, n, k, alpha, batchShape: [], a: matrix(m, k, a), b: matrix(k, n, b), out });
  return out.storage;
}

/** Returns -1, 0 or 1: each in turn along a row and along a column. */
const cycle = (step: number, column: number): number => ((step * 2 + column) % 3) - 1;

const valuesOf = (dtype: Dtype, storage: NodeJS.TypedArray) =>
  Array.from({ length: storage.length }, (_, at) => Number(elementTypes[dtype].read(storage, at)));

test("the instruction sets match the (emulated) processor; the last one is used", () => {
  const named = process.env["ARM64_ISAS"]?.split(",");
  expect(isas).toEqual(named ?? expect.arrayContaining([initial]));
  if (named !== undefined) expect(initial).toBe(named.at(-1)!);
});

describe.each(isas)("products of two-byte floats are correct with %s", (isa) => {
  const multipliesPairs = ["avx512_bf16", "amx", "bf16"].includes(isa);
  const addsWhole = ["fhm", "bf16"].includes(isa);

  test("bfloat16: instructions for pairs flush subnormal products to zero, others do not", () => {
    configure(native, "isa", isa);
    const tiny = 2 ** -65; // its square is subnormal, also in bfloat16
    const values = valuesOf(
      "bfloat16",
      product(
        "bfloat16",
        [size, size, size],
        (_, step) => (step === 5 ? tiny : 0),
        () => tiny,
      ),
    );
    expect(new Set(values)).toEqual(new Set([multipliesPairs ? 0 : tiny * tiny]));
  });

  test("float16: FMLAL adds all of k to one sum, other code sums blocks of it", () => {
    configure(native, "isa", isa);
    const large = 2 ** 12;
    // The first product is 2^24, to which adding 1 changes nothing in float32; the last one is −2^24.
    const length = 1600;
    const signed = (step: number) => (step === 0 ? large : step === length - 1 ? -large : 1);
    const values = valuesOf(
      "float16",
      product(
        "float16",
        [size, size, length],
        (_, step) => signed(step),
        (step) => Math.abs(signed(step)),
      ),
    );
    expect(new Set(values.map((value) => value === 0))).toEqual(new Set([addsWhole]));
  });

  test.each(["bfloat16", "float16"] as const)("%s: results have the same bits on 1, 2 and 4 threads", (dtype) => {
    configure(native, "isa", isa);
    const results = ["1", "2", "4"].map((threads) => {
      configure(native, "threads", threads);
      return Bun.hash(
        product(
          dtype,
          [133, 101, 75],
          (row, step) => Math.sin(row * 75 + step),
          (step, column) => Math.cos(step * 101 + column),
        ).buffer,
      );
    });
    configure(native, "threads", "auto");
    expect(new Set(results).size).toBe(1);
  });

  test.each(["bfloat16", "float16"] as const)("%s: infinity and NaN stay in their rows and columns", (dtype) => {
    configure(native, "isa", isa);
    const infinity = Number.POSITIVE_INFINITY;
    const values = valuesOf(
      dtype,
      product(
        dtype,
        [37, 39, 65],
        (row, step) => (row === 3 && step === 64 ? infinity : row === 9 && step === 2 ? Number.NaN : 1),
        (_, column) => (column === 38 ? -1 : column === 7 ? 0 : 1),
      ),
    );
    for (const [at, value] of values.entries()) {
      const [row, column] = [Math.floor(at / 39), at % 39];
      const sign = column === 38 ? -1 : column === 7 ? 0 : 1;
      const expected = row === 9 ? Number.NaN : row === 3 ? (sign === 0 ? Number.NaN : sign * infinity) : 65 * sign;
      expect([row, column, value + 0]).toEqual([row, column, expected]);
    }
  });

  test.each(["bfloat16", "float16"] as const)("%s: rows of a may be at any distance, in place or copied", (dtype) => {
    configure(native, "isa", isa);
    const [m, n] = [70, 101]; // two whole tiles of rows, and a part
    const [left, right] = [(row: number, step: number) => ((row * 5 + step * 3) % 7) - 3, cycle];
    for (const k of [32, 64, 70])
      for (const rowStride of [k, k + 1, 100, 1000]) {
        const type = elementTypes[dtype];
        const a = type.make(m * rowStride + 3);
        for (let at = 0; at < a.length; at++) type.write(a, at, Number.NaN); // gaps between rows are never read
        for (let at = 0; at < m * k; at++) {
          const [row, step] = [Math.floor(at / k), at % k];
          type.write(a, 3 + row * rowStride + step, left(row, step));
        }
        const b = type.make(k * n);
        for (let at = 0; at < b.length; at++) type.write(b, at, right(Math.floor(at / n), at % n));
        const out = type.make(m * n);
        const matrix = (storage: NodeJS.TypedArray, stride: number, offset = 0) =>
          ({ storage, offset, rowStride: stride, columnStride: 1, batchStrides: [] }) as const;
        const operands = { a: matrix(a, rowStride, 3), b: matrix(b, n), out: matrix(out, n) };
        multiply({ dtype, m, n, k, alpha: 1, batchShape: [], ...operands });
        // whole numbers below 2^8 have exact sums
        const sumOf = (row: number, column: number) =>
          Array.from({ length: k }, (_, step) => left(row, step) * right(step, column)).reduce((x, y) => x + y, 0);
        const expected = Array.from({ length: m * n }, (_, at) => sumOf(Math.floor(at / n), at % n) + 0);
        expect(valuesOf(dtype, out).map((value) => value + 0)).toEqual(expected);
      }
  });

  test.each(["bfloat16", "float16"] as const)("%s: columns of b may be at any distance and offset", (dtype) => {
    configure(native, "isa", isa);
    const type = elementTypes[dtype];
    const random = new Random(41);
    const right = (step: number, column: number) => ((step * 5 + column * 3) % 7) - 3;
    for (let draw = 0; draw < repeats({ usual: 12, all: 60 }); draw++) {
      // up to three blocks of copied columns, and whole panels with a part
      const [m, n, k] = [random.integer(33, 40), random.integer(33, 70), random.integer(33, 600)];
      const [columnStride, offset] = [k + random.integer(0, 3), random.integer(0, 3)];
      const b = type.make(n * columnStride + offset);
      for (let at = 0; at < b.length; at++) type.write(b, at, Number.NaN); // gaps between columns are never read
      for (let column = 0; column < n; column++)
        for (let step = 0; step < k; step++) type.write(b, offset + column * columnStride + step, right(step, column));
      const a = type.make(m * k);
      for (let at = 0; at < a.length; at++) type.write(a, at, cycle(Math.floor(at / k), at % k));
      const out = type.make(m * n);
      const rows = (storage: NodeJS.TypedArray, stride: number) =>
        ({ storage, offset: 0, rowStride: stride, columnStride: 1, batchStrides: [] }) as const;
      const columns = { storage: b, offset, rowStride: 1, columnStride, batchStrides: [] };
      multiply({ dtype, m, n, k, alpha: 1, batchShape: [], a: rows(a, k), b: columns, out: rows(out, n) });
      const bits = product(dtype, [m, n, k], cycle, right); // the same numbers in rows
      expect([m, n, k, columnStride, offset, valuesOf(dtype, out)]).toEqual([
        ...[m, n, k, columnStride, offset],
        valuesOf(dtype, bits),
      ]);
    }
  });

  test("values too large for a dtype become infinity", () => {
    configure(native, "isa", isa);
    const overflows = { bfloat16: 2 ** 126, float16: 2 ** 12 } as const;
    for (const dtype of ["bfloat16", "float16"] as const) {
      const value = overflows[dtype];
      const values = valuesOf(
        dtype,
        product(
          dtype,
          [size, size, size],
          () => value,
          () => 4,
        ),
      );
      expect([dtype, new Set(values)]).toEqual([dtype, new Set([Number.POSITIVE_INFINITY])]);
    }
  });
});
