/**
 * Softmax and running sums so large that the cpu backend streams them past the caches, with each instruction set: whole
 * cache lines, their remainder, rows that begin within a cache line.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../../src/backend/cpu/report.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { detach, grad } from "../../../src/ops/gradient/backward.ts";
import { cumprod, cumsum, logSoftmax, reshape, softmax, tensor, toDType } from "../../../src/ops/index.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";

const rows = 2053;
const columns = 2055; // 17 MB of float32
const size = rows * columns;
const source = Float32Array.from({ length: size }, (_, at) => ((at * 7919) % 1021) / 64 - 8);

const { native } = cpuLibrary();
const { isa: initial, isas } = cpuInfo(native);
afterAll(() => {
  configure(native, "isa", initial);
  known.clear();
});

/** The layout of slices: the number of an element's slice, and how many there are. */
const layouts = {
  "the first axis": { shape: [rows, columns], dim: 0, slices: columns, sliceOf: (at: number) => at % columns },
  "the last axis": { shape: [rows, columns], dim: 1, slices: rows, sliceOf: (at: number) => Math.floor(at / columns) },
  "one slice": { shape: [size], dim: 0, slices: 1, sliceOf: () => 0 },
} as const;

/** Σ value(element) along each slice. */
function sums(slices: number, sliceOf: (at: number) => number, value: (at: number) => number): Float64Array {
  const result = new Float64Array(slices);
  for (let at = 0; at < size; at++) result[sliceOf(at)] += value(at);
  return result;
}

/** The index of the first element whose error exceeds its bound; −1 if none does. */
function firstWrong(got: ArrayLike<number>, want: Float64Array, bound: (want: number) => number): number {
  for (let at = 0; at < size; at++) if (!(Math.abs(got[at] - want[at]) <= bound(want[at]))) return at;
  return -1;
}

const known = new Map<string, unknown>();
/** An expected result, computed once for all instruction sets. */
function once<Result>(name: string, compute: () => Result): Result {
  if (!known.has(name)) known.set(name, compute());
  return known.get(name) as Result;
}

function filled(value: (at: number) => number): Float64Array {
  const result = new Float64Array(size); // a loop: Float64Array.from with a function takes several times as long
  for (let at = 0; at < size; at++) result[at] = value(at);
  return result;
}

const exponentials = Float64Array.from(source, (value) => Math.exp(value));
/** Differences of up to 16 are rounded before the exponential is computed, and results once more. */
const relative = (want: number) => Math.abs(want) * 2 ** -19;
const logarithmic = (want: number) => (Math.abs(want) + 16) * 2 ** -23;

describe.each(isas)("large slices are accurate with %s", (isa) => {
  const on = <Result>(body: () => Result): Result => {
    configure(native, "isa", isa);
    return withStrict(true, () => withBackend("cpu", body));
  };

  /** Returns the gradient of x, with x itself as the gradient of y. */
  const gradientOf = (y: Tensor, x: Tensor) =>
    on(() => grad([y], [x], { gradOutputs: [detach(x)] }))[0].dataSync() as Float32Array;

  test.each(Object.entries(layouts))("softmax along %s is correct", (name, { shape, dim, slices, sliceOf }) => {
    const wanted = once(name, () => {
      const totals = sums(slices, sliceOf, (at) => exponentials[at]);
      const shares = filled((at) => exponentials[at] / totals[sliceOf(at)]);
      const products = sums(slices, sliceOf, (at) => source[at] * shares[at]);
      return {
        shares,
        logarithms: filled((at) => source[at] - Math.log(totals[sliceOf(at)])),
        gradient: filled((at) => shares[at] * (source[at] - products[sliceOf(at)])),
        largest: totals.reduce((most, total) => Math.max(most, Math.exp(8) / total), 0),
      };
    });
    const x = on(() => tensor(source, { shape, requiresGrad: true }));
    const y = on(() => softmax(x, { dim }));
    expect(firstWrong(y.dataSync(), wanted.shares, relative)).toBe(-1);
    expect(firstWrong(on(() => logSoftmax(x, { dim })).dataSync(), wanted.logarithms, logarithmic)).toBe(-1);
    expect(firstWrong(gradientOf(y, x), wanted.gradient, () => wanted.largest * 32 * 2 ** -20)).toBe(-1);
  });

  test("running sums are correct, forward and reversed, of a float and of a dtype that is converted", () => {
    const wanted = once("running sums", () => {
      const running = Float64Array.from(source);
      for (let at = 1; at < size; at++) running[at] += running[at - 1];
      let count = 0;
      return {
        running,
        reversed: filled((at) => running[size - 1] - running[at] + source[at]),
        counts: filled((at) => (count += Math.trunc(source[at]))),
      };
    });
    const bound = (want: number) => Math.abs(want) * 2 ** -24; // float64 sums are exact here, and rounded once
    const vector = on(() => tensor(source, { requiresGrad: true }));
    const sum = on(() => cumsum(vector, { dim: 0 }));
    expect(firstWrong(sum.dataSync(), wanted.running, bound)).toBe(-1);
    expect(firstWrong(gradientOf(sum, vector), wanted.reversed, bound)).toBe(-1); // summed from the last element on
    const counts = on(() => toDType(cumsum(toDType(tensor(source), "int8"), { dim: 0 }), "float64")).dataSync();
    expect(firstWrong(counts as Float64Array, wanted.counts, () => 0)).toBe(-1);
  });

  test("a product stays 0 however large the elements after it are", () => {
    const x = on(() => reshape(tensor(Float32Array.from({ length: 70_000 }, (_, at) => (at === 3 ? 0 : 9))), [-1]));
    const got = on(() => cumprod(x, { dim: 0 })).dataSync();
    expect([got[2], got.subarray(3).every((value) => value === 0)]).toEqual([729, true]);
  });
});
