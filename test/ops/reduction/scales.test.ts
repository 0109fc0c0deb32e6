/**
 * Results and gradients that fit float32 are right even if intermediate squares, powers or sums do not fit: numbers
 * about 1e25, 1e-30 and 1e38, compared with formulas in float64.
 */
import { describe, expect, test } from "bun:test";
import type { BackendName } from "../../../src/backend/names.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { contiguous, cumprod, logsumexp, mean, norm, permute, prod, std, sum, tensor } from "../../../src/ops/index.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tested } from "../run.ts";

const on = <Result>(backend: BackendName, body: () => Result): Result =>
  withStrict(true, () => withBackend(backend, body));

const shape = [1, -2, 3, 0.5, -0.25, 1.5, 2.5, -1.25];
/** So many elements that they are reduced in two passes; every eighth one is of the shape above. */
const longs = Array.from({ length: 40_000 }, (_, index) => shape[index % 8] * (1 + (index % 7) / 16));
const scales = [1, 1e25, 1e-30, 2 ** 126 / 4];

const total = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);
const euclidean = (x: readonly number[]): number => Math.sqrt(total(x.map((value) => value * value)));
const power = (x: readonly number[], p: number): number => total(x.map((value) => Math.abs(value) ** p)) ** (1 / p);
const average = (x: readonly number[]): number => total(x) / x.length;
function deviation(x: readonly number[]): number {
  const middle = average(x);
  return Math.sqrt(total(x.map((value) => (value - middle) ** 2)) / (x.length - 1));
}

interface Row {
  readonly compute: (x: Tensor) => Tensor;
  /**
   * Computes the result for numbers about 1. It is homogeneous: f(s · x) = s · f(x), so its gradient does not depend on
   * s.
   */
  readonly formula: (x: readonly number[]) => number;
  readonly gradient: (x: readonly number[]) => number[];
}

const normRow = (p: number): Row => ({
  compute: (x) => norm(x, { p }),
  formula: (x) => power(x, p),
  gradient: (x) => {
    const whole = power(x, p);
    return x.map((value) => Math.sign(value) * (Math.abs(value) / whole) ** (p - 1));
  },
});

const rows: Readonly<Record<string, Row>> = {
  norm: {
    compute: (x) => norm(x),
    formula: euclidean,
    gradient: (x) => {
      const whole = euclidean(x);
      return x.map((value) => value / whole);
    },
  },
  "norm of order 3": normRow(3),
  "norm of order 1.5": normRow(1.5),
  "norm of order -2": normRow(-2),
  std: {
    compute: (x) => std(x),
    formula: deviation,
    gradient: (x) => {
      const [middle, spread] = [average(x), deviation(x)];
      return x.map((value) => (value - middle) / spread / (x.length - 1));
    },
  },
  mean: { compute: (x) => mean(x), formula: average, gradient: (x) => x.map(() => 1 / x.length) },
};

/** The largest difference, in units of the largest expected number. */
function errorOf(got: readonly number[], wanted: readonly number[]): number {
  const largest = Math.max(...wanted.map(Math.abs));
  return got.reduce((worst, value, index) => Math.max(worst, Math.abs(value - wanted[index]) / largest), 0);
}

const isFinite32 = (value: number): boolean => Math.abs(value) <= 2 ** 127;

describe.each(tested)("reductions of small and large numbers on %s", (backend) => {
  for (const [name, { compute, formula, gradient }] of Object.entries(rows))
    for (const scale of scales)
      for (const numbers of [shape, longs]) {
        const exact = numbers.map((value) => Math.fround(value * scale) / scale);
        if (!isFinite32(formula(exact) * scale)) continue;
        test(`${name} of ${numbers.length} numbers about ${scale.toPrecision(2)} is accurate`, () =>
          on(backend, () => {
            const x = tensor(
              Float32Array.from(numbers, (value) => value * scale),
              { requiresGrad: true },
            );
            const y = compute(x);
            const [own] = grad([y], [x]);
            const bound = 8 * Math.log2(numbers.length) * 2 ** -24;
            expect(errorOf([(y.item() as number) / scale], [formula(exact)])).toBeLessThan(bound);
            expect(errorOf(own.toArray() as number[], gradient(exact))).toBeLessThan(4 * bound);
          }));
      }

  test("mean is right for numbers whose sum is too large", () => {
    const x = on(backend, () => tensor(new Float32Array(3000).fill(2e38)));
    expect(on(backend, () => mean(x).item())).toBe(Math.fround(2e38));
    expect(on(backend, () => sum(x).item())).toBe(Number.POSITIVE_INFINITY);
  });

  test("products are right if partial products leave float32's range", () => {
    const x = on(backend, () => tensor([1e30, 1e30, 1e-30, 1e-30, 1e-30, 1e-30, 1e30, 1e30, 3]));
    expect(on(backend, () => prod(x).item())).toBeCloseTo(3, 5);
    const running = on(backend, () => cumprod(x, { dim: 0 }).toArray()) as number[];
    expect(running[1]).toBe(Number.POSITIVE_INFINITY);
    expect(running[3]).toBeCloseTo(1, 5);
    expect(running[5]).toBe(0);
    expect(running[8]).toBeCloseTo(3, 5);
  });

  test("logsumexp of NaN and infinity is NaN, of rows and of columns", () => {
    const rows = [
      [Number.NaN, Number.POSITIVE_INFINITY, 1],
      [Number.POSITIVE_INFINITY, 1, Number.NaN],
      [1, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
    ];
    const wanted = [Number.NaN, Number.NaN, Number.POSITIVE_INFINITY];
    const x = on(backend, () => tensor(rows));
    expect(on(backend, () => logsumexp(x, { dim: 1 }).toArray())).toEqual(wanted);
    expect(on(backend, () => logsumexp(contiguous(permute(x, [1, 0])), { dim: 0 }).toArray())).toEqual(wanted);
  });

  test.each([
    ["zero", [2, 0, Number.POSITIVE_INFINITY, 3], [2, 0, Number.NaN, Number.NaN]],
    ["infinity", [2, Number.NEGATIVE_INFINITY, 3, -1], [2, -Infinity, -Infinity, Infinity]],
    ["NaN", [2, Number.NaN, 0, 3], [2, Number.NaN, Number.NaN, Number.NaN]],
  ] as const)("products with %s are accurate", (_, values, wanted) => {
    const x = on(backend, () => tensor([...values]));
    expect(on(backend, () => cumprod(x, { dim: 0 }).toArray())).toEqual([...wanted]);
    expect(on(backend, () => prod(x).item())).toBe(wanted.at(-1)!);
  });
});
