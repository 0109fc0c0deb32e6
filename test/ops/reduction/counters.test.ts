/**
 * The memory traffic of each kernel of reductions, scans and softmax, as the software device counts it: elements and
 * results once, and the states that one pass leaves to the next. Softmax reads a slice a second time if it is longer
 * than its threads can hold.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { metalContext } from "../../../src/backend/metal/context.ts";
import type { Counters } from "../../../src/backend/metal/report.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import {
  all,
  amax,
  argmin,
  cumprod,
  cumsum,
  logSoftmax,
  logsumexp,
  max,
  mean,
  norm,
  ones,
  prod,
  softmax,
  std,
  sum,
  variance,
} from "../../../src/ops/index.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import { elementCount } from "../../../src/tensor/shape.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tested } from "../run.ts";

const LINE = 128; // bytes of a cache line

/** Only the software device has counters. */
const isWatched = tested.includes("metal") && metalContext().isSoftware;

const watch = (isOn: boolean): void => {
  for (const setting of ["check", "count"]) metalContext().configure(setting, isOn);
};
afterAll(() => isWatched && watch(false));

type Compute = (x: Tensor) => unknown;

/** The counters of each kernel that `body` launches, in order. */
function countersOf(body: () => unknown): Counters[] {
  const context = metalContext();
  watch(true);
  context.wait();
  context.report({ clear: true });
  withStrict(true, () => withBackend("metal", body));
  context.wait();
  const { dispatches, findings } = context.report({ clear: true });
  expect(findings).toEqual([]);
  return dispatches.map(({ counters }) => counters);
}

const on = <Result>(body: () => Result): Result => withStrict(true, () => withBackend("metal", body));
/** Ones, at the start of a buffer. */
const operand = (shape: readonly number[], dtype: DType): Tensor => on(() => ones(shape, { dtype }));

/**
 * The number of elements that the first kernel reads, over all its threads. Threads also read parameters, but the same
 * number for every dtype, so float32 reads 2 bytes per element more than float16.
 */
function elementsRead(compute: Compute, shape: readonly number[]): number {
  const [wide, narrow] = (["float32", "float16"] as const).map((dtype) => {
    const x = operand(shape, dtype);
    return countersOf(() => compute(x))[0].device_bytes_read;
  });
  return (wide - narrow) / 2;
}

const linesOf = (bytes: number): number => Math.ceil(bytes / LINE);
/** Parameters are 408 bytes; which of their lines are read depends on the rank. */
const PARAMETER_LINES = 4;

/**
 * Checks that each line of data is read from memory once, regardless of the number of threads. The other lines that are
 * read hold parameters.
 */
function expectLines({ cache_lines_read }: Counters, bytes: number): void {
  expect(cache_lines_read).toBeGreaterThan(linesOf(bytes));
  expect(cache_lines_read).toBeLessThanOrEqual(linesOf(bytes) + PARAMETER_LINES);
}

const shape = [160, 256];
const elements = elementCount(shape);
/** All elements, in three chunks; rows; adjacent columns. */
const axes: readonly (readonly [string, { readonly dim?: number }, number, number])[] = [
  ["all elements", {}, 1, 3],
  ["rows", { dim: 1 }, 160, 1],
  ["columns", { dim: 0 }, 256, 1],
];
type Folded = (x: Tensor, options: { readonly dim?: number }) => Tensor;
/** Reductions with one result, and the number of fields of a state. */
const folds: readonly (readonly [string, Folded, number])[] = [
  ["sum", sum, 1],
  ["mean", mean, 2],
  ["prod", prod, 5],
  ["amax", amax, 1],
  ["norm", norm, 2],
  ["norm of order 3", (x, options) => norm(x, { ...options, p: 3 }), 5],
  ["variance", variance, 5],
  ["std", std, 5],
  ["logsumexp", logsumexp, 2],
];

describe.skipIf(!isWatched)("reductions read each element once", () => {
  for (const [name, compute, fields] of folds)
    test.each(axes)(`${name} of %s reads each element once`, (_, options, results, chunks) => {
      expect(elementsRead((x) => compute(x, options), shape)).toBe(elements);
      const x = operand(shape, "float32");
      const [first, second, ...more] = countersOf(() => compute(x, options));
      expectLines(first, 4 * elements);
      expect(more).toEqual([]);
      expect(first.device_bytes_written).toBe(4 * (chunks > 1 ? fields * chunks * results : results));
      expect(second === undefined).toBe(chunks === 1);
      if (second === undefined) return;
      expect(second.device_bytes_written).toBe(4 * results);
      expectLines(second, 4 * fields * chunks * results);
    });

  test.each(axes)("all of %s writes one byte per result", (_, options, results, chunks) => {
    expect(elementsRead((x) => all(x, options), shape)).toBe(elements);
    const counters = countersOf(() => all(operand(shape, "float16"), options)).slice(-1 - Number(chunks > 1));
    expect(counters.at(-1)!.device_bytes_written).toBe(results);
  });

  const indexed: readonly (readonly [string, (x: Tensor, dim: number) => unknown])[] = [
    ["max", (x, dim) => max(x, { dim })],
    ["argmin", (x, dim) => argmin(x, { dim })],
  ];
  for (const [name, compute] of indexed)
    test.each(axes.slice(1))(`${name} of %s reads each element once`, (_, { dim = 0 }, results) => {
      expect(elementsRead((x) => compute(x, dim), shape)).toBe(elements);
      const x = operand(shape, "float32");
      const [only, ...more] = countersOf(() => compute(x, dim));
      expect(more).toEqual([]);
      expectLines(only, 4 * elements);
      expect(only.device_bytes_written).toBe((4 + 8) * results);
    });

  test("the index of the largest element passes through states of a value and an index", () => {
    const x = operand([elements], "float32");
    const [first, second, ...more] = countersOf(() => max(x, { dim: 0 }));
    expect(more).toEqual([]);
    expect([first.device_bytes_written, second.device_bytes_written]).toEqual([3 * (4 + 8), 4 + 8]);
  });

  test("a larger sum takes passes, each of which reads what the one before it wrote", () => {
    const size = 20 * 16384;
    const x = operand([size], "float32");
    const [first, second, ...more] = countersOf(() => sum(x));
    expect(more).toEqual([]);
    expectLines(first, 4 * size);
    expect([first.device_bytes_written, second.device_bytes_written]).toEqual([4 * 20, 4]);
  });
});

describe.skipIf(!isWatched)("scans read each element once", () => {
  const scans: readonly (readonly [string, typeof cumsum])[] = [
    ["cumsum", cumsum],
    ["cumprod", cumprod],
  ];
  for (const [name, compute] of scans)
    test.each([0, 1])(`${name} along axis %d reads each element once`, (dim) => {
      expect(elementsRead((x) => compute(x, { dim }), shape)).toBe(elements);
      const x = operand(shape, "float32");
      const [only, ...more] = countersOf(() => compute(x, { dim }));
      expect(more).toEqual([]);
      expectLines(only, 4 * elements);
      expect(only).toMatchObject({ device_bytes_written: 4 * elements, cache_lines_written: linesOf(4 * elements) });
    });
});

describe.skipIf(!isWatched)("softmax reads each element once", () => {
  const softmaxes: readonly (readonly [string, typeof softmax])[] = [
    ["softmax", softmax],
    ["logSoftmax", logSoftmax],
  ];
  /**
   * Threads hold parts of slices. A slice has 32 threads, or 256 if it is longer, with up to 32 elements each; adjacent
   * slices have 8 threads with up to 16 elements each.
   */
  const slices: readonly (readonly [string, readonly number[], number, number])[] = [
    ["rows of a SIMD-group", [9, 512], 1, 1],
    ["rows of a threadgroup", [3, 8192], 1, 1],
    ["longer rows", [2, 8193], 1, 2],
    ["columns", [128, 40], 0, 1],
    ["longer columns", [129, 40], 0, 2],
  ];
  for (const [name, compute] of softmaxes)
    test.each(slices)(`${name} of %s reads and writes each element once`, (_, own, dim, times) => {
      const count = elementCount(own);
      expect(elementsRead((x) => compute(x, { dim }), own)).toBe(times * count);
      const x = operand(own, "float32");
      const [only, ...more] = countersOf(() => compute(x, { dim }));
      expect(more).toEqual([]);
      expectLines(only, 4 * count);
      expect(only.device_bytes_written).toBe(4 * count);
    });

  test.each(softmaxes)("the gradient of %s reads the cotangent and the result once", (_, compute) => {
    const own = [9, 512];
    const [wide, narrow] = (["float32", "float16"] as const).map((dtype) => {
      const x = operand(own, dtype);
      x.requiresGrad = true;
      const [y, cotangent] = [on(() => compute(x, { dim: 1 })), operand(own, dtype)];
      const [only, ...more] = countersOf(() => grad([y], [x], { gradOutputs: [cotangent] }));
      expect(more).toEqual([]);
      return only;
    });
    expect((wide.device_bytes_read - narrow.device_bytes_read) / 2).toBe(2 * elementCount(own));
    expect(wide.device_bytes_written).toBe(4 * elementCount(own));
    expectLines(wide, 2 * 4 * elementCount(own));
  });
});
