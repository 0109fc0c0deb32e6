/**
 * Softmax and related functions at 1e2 to 1e30, where float32 rounds a log-sum-exp by more than the elements differ:
 * results and gradients compared with the formulas in float64.
 */
import { describe, expect, test } from "bun:test";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { crossEntropy, logSoftmax, logsumexp, mul, reshape, softmax, sum, tensor } from "../../../src/ops/index.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { testVariants } from "../../linalg/variants.ts";
import { tested } from "../run.ts";

const count = 37;
const target = 3;
const indices = Array.from({ length: count }, (_, at) => at);
const weights = indices.map((at) => (((at * 5) % 11) - 5) / 4);
const sizes = [1e2, 1e4, 1.6e4, 6e4, 1e7, 1e15, 1e30, -1e4, -1e30];

/** Float32 numbers near `size`: some units in the last place apart, all equal, and far apart. */
const slices: Readonly<Record<string, (size: number) => number[]>> = {
  near: (size) => {
    const unit = Math.max(2 ** (Math.floor(Math.log2(Math.abs(size))) - 23), 1 / 8);
    return indices.map((at) => Math.fround(size + unit * ((at * at * 7) % 23)));
  },
  tied: (size) => indices.map(() => Math.fround(size)),
  spread: (size) => indices.map((at) => Math.fround((size * ((at % 5) - 2)) / 2)),
};

const dot = (a: readonly number[], b: readonly number[]): number => a.reduce((total, x, at) => total + x * b[at], 0);
const total = (x: readonly number[]): number => x.reduce((all, value) => all + value, 0);

/** Each function with its gradient for the cotangent `weights`, or 1 for a number, in float64. */
function expected(x: readonly number[]): Readonly<Record<string, readonly [number[], number[]]>> {
  const most = Math.max(...x);
  const parts = x.map((value) => Math.exp(value - most));
  const sum = total(parts);
  const p = parts.map((part) => part / sum);
  const logarithms = x.map((value) => value - most - Math.log(sum));
  const inner = dot(p, weights);
  return {
    softmax: [p, p.map((own, at) => own * (weights[at] - inner))],
    logSoftmax: [logarithms, p.map((own, at) => weights[at] - own * total(weights))],
    logsumexp: [[most + Math.log(sum)], p],
    crossEntropy: [[-logarithms[target]], p.map((own, at) => own - (at === target ? 1 : 0))],
  };
}

const functions: Readonly<Record<string, (x: Tensor) => Tensor>> = {
  softmax,
  logSoftmax,
  logsumexp,
  crossEntropy: (x) => crossEntropy(reshape(x, [1, count]), tensor([target], { dtype: "int64" })),
};

const numbers = (x: Tensor): number[] => Array.from(x.dataSync(), Number);
const largest = (values: readonly number[]) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

/** Differences of at most 8 roundings of the largest value. */
function expectClose(got: readonly number[], want: readonly number[]): void {
  expect(got.every(Number.isFinite)).toBe(true);
  expect(largest(got.map((value, at) => value - want[at]))).toBeLessThanOrEqual(8 * 2 ** -24 * largest(want));
}

testVariants(import.meta.path, "on metal (softmax|logSoftmax) and");

describe.each([...tested])("large slices on %s", (backend) => {
  const on = <Result>(body: () => Result): Result => withStrict(true, () => withBackend(backend, body));

  test.each(Object.keys(functions))("%s and its gradient", (name) => {
    for (const size of sizes)
      for (const slice of Object.values(slices)) {
        const values = slice(size);
        const [result, gradient] = on(() => {
          const x = tensor(values, { requiresGrad: true });
          const y = functions[name](x);
          return [y, ...grad(sum(y.size === 1 ? y : mul(y, tensor(weights))), [x])].map(numbers);
        }) as [number[], number[]];
        const [wanted, wantedGradient] = expected(values)[name];
        expectClose(result, wanted);
        expectClose(gradient, wantedGradient);
      }
  });

  test("logsumexp over several axes: its gradients add up to those of its results", () => {
    const x = on(() => tensor(slices["near"](6e4).slice(0, 24), { shape: [2, 3, 4], requiresGrad: true }));
    const [gradient] = on(() => grad(sum(mul(logsumexp(x, { dim: [0, 2] }), tensor([1, 2, -3]))), [x])).map(numbers);
    const along = (axis: number) => total(gradient.filter((_, at) => Math.floor(at / 4) % 3 === axis));
    for (const [axis, wanted] of [1, 2, -3].entries()) expect(along(axis)).toBeCloseTo(wanted, 6);
  });

  test("logsumexp: the gradient of its gradient is p (w − Σ p w)", () => {
    for (const size of sizes) {
      const values = slices["near"](size);
      const [second] = on(() => {
        const x = tensor(values, { requiresGrad: true });
        const [first] = grad(logsumexp(x), [x], { createGraph: true });
        return grad(sum(mul(first, tensor(weights))), [x]).map(numbers);
      });
      expectClose(second, expected(values)["softmax"][1]);
    }
  });

  test("logsumexp: gradients next to infinities are PyTorch's", () => {
    const gradientOf = (...values: number[]) =>
      on(() => {
        const x = tensor(values, { requiresGrad: true });
        return grad(logsumexp(x), [x]).map(numbers)[0];
      });
    expect(gradientOf(2, -Infinity, 2)).toEqual([0.5, 0, 0.5]);
    expect(gradientOf(2, Infinity, -Infinity)).toEqual([0, Number.NaN, 0]);
    expect(gradientOf(-Infinity, -Infinity)).toEqual([Number.NaN, Number.NaN]);
    expect(gradientOf(1, Number.NaN)).toEqual([Number.NaN, Number.NaN]);
  });
});
