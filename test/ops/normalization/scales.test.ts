/**
 * Normalized rows do not depend on the scale of their elements: numbers about 1e25, 1e-30 and 1e37, whose squares
 * exceed float32, give the same result as those about 1, and gradients of both orders that are smaller by that factor.
 */
import { describe, expect, test } from "bun:test";
import type { BackendName } from "../../../src/backend/names.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { addLayerNorm, addRmsNorm, layerNorm, mul, rmsNorm, sum, tensor } from "../../../src/ops/index.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tested } from "../run.ts";

const on = <Result>(backend: BackendName, body: () => Result): Result =>
  withStrict(true, () => withBackend(backend, body));

const short = [1, -2, 3, 0.5, -0.25, 1.5, 2.5, -1.25];
/** Longer than the rows that threads of a Metal kernel hold. */
const long = Array.from({ length: 8500 }, (_, index) => short[index % 8] * (1 + (index % 7) / 16));
const factors = (count: number) => Float32Array.from({ length: count }, (_, index) => 1 + (index % 5) / 4);

const average = (x: readonly number[]): number => x.reduce((sum, value) => sum + value, 0) / x.length;

/** In float64: the normalized row, and the gradient of Σ factor · n for x. */
function oracle(x: readonly number[], isCentered: boolean) {
  const middle = isCentered ? average(x) : 0;
  const scale = 1 / Math.sqrt(average(x.map((value) => (value - middle) ** 2)));
  const n = x.map((value) => (value - middle) * scale);
  const v = [...factors(x.length)];
  const [ofMean, along] = [isCentered ? average(v) : 0, average(v.map((value, index) => value * n[index]))];
  return { n, gradient: v.map((value, index) => scale * (value - ofMean - n[index] * along)) };
}

const eps = 0;
const operations: Readonly<Record<string, { isCentered: boolean; compute: (x: Tensor) => Tensor }>> = {
  rmsNorm: { isCentered: false, compute: (x) => rmsNorm(x, { eps }) },
  addRmsNorm: { isCentered: false, compute: (x) => addRmsNorm(mul(x, 0.25), mul(x, 0.75), { eps }).out },
  layerNorm: { isCentered: true, compute: (x) => layerNorm(x, { eps }) },
  addLayerNorm: { isCentered: true, compute: (x) => addLayerNorm(mul(x, 0.25), mul(x, 0.75), { eps }).out },
};

function errorOf(got: readonly number[], wanted: readonly number[]): number {
  const largest = Math.max(...wanted.map(Math.abs));
  return got.reduce((worst, value, index) => Math.max(worst, Math.abs(value - wanted[index]) / largest), 0);
}

const numbersOf = (x: Tensor): number[] => x.toArray() as number[];

/** The gradient of Σ w · gradient, with w = 1, 2, 3, 1, …: by central differences of the oracle. */
function secondOracle(x: readonly number[], isCentered: boolean): number[] {
  const total = (at: readonly number[]): number =>
    oracle(at, isCentered).gradient.reduce((sum, value, index) => sum + value * (1 + (index % 3)), 0);
  const step = 1e-5;
  return x.map((_, index) => {
    const moved = (by: number) => x.map((value, other) => (other === index ? value + by : value));
    return (total(moved(step)) - total(moved(-step))) / (2 * step);
  });
}

describe.each(tested)("norms of small and large numbers on %s", (backend) => {
  for (const [name, { isCentered, compute }] of Object.entries(operations))
    for (const scale of [2 ** 83, 2 ** -100, 2 ** 124]) {
      for (const numbers of [short, long])
        test(`${name} of ${numbers.length} numbers about ${scale.toPrecision(1)} is accurate`, () =>
          on(backend, () => {
            const x = tensor(
              Float32Array.from(numbers, (value) => value * scale),
              { requiresGrad: true },
            );
            const y = compute(x);
            const own = grad([sum(mul(y, tensor(factors(numbers.length))) as Tensor)], [x])[0];
            const wanted = oracle(numbers, isCentered);
            expect(errorOf(numbersOf(y), wanted.n)).toBeLessThan(2 ** -20);
            if (scale > 2 ** 120) return; // the gradient is below the normal range of float32
            const gradient = numbersOf(own).map((value) => value * scale);
            expect(errorOf(gradient, wanted.gradient)).toBeLessThan(2 ** -19);
          }));
    }

  for (const [name, { isCentered, compute }] of Object.entries(operations))
    for (const scale of [2 ** 70, 2 ** -70])
      test(`the second gradient of ${name} about ${scale.toPrecision(1)} is accurate`, () =>
        on(backend, () => {
          const x = tensor(
            Float32Array.from(short, (value) => value * scale),
            { requiresGrad: true },
          );
          const first = sum(mul(compute(x), tensor(factors(8))) as Tensor);
          const own = grad([first], [x], { createGraph: true })[0];
          const weights = tensor(Float32Array.from(short, (_, index) => (1 + (index % 3)) * scale));
          const second = grad([sum(mul(own, weights) as Tensor)], [x])[0];
          const got = numbersOf(second).map((value) => value * scale);
          expect(errorOf(got, secondOracle(short, isCentered))).toBeLessThan(2 ** -17);
        }));

  test("eps counts as in the formula for small and large rows", () => {
    const scales = [1e-30, 1e-12, 1e-3, 1, 1e12, 1e30];
    for (const eps of [1e-6, 1e-38, 1])
      for (const scale of scales) {
        const x = tensor(Float32Array.from(short, (value) => value * scale));
        const squares = average(short.map((value) => (value * scale) ** 2));
        const wanted = short.map((value) => (value * scale) / Math.sqrt(squares + Math.fround(eps)));
        expect(errorOf(numbersOf(on(backend, () => rmsNorm(x, { eps }))), wanted)).toBeLessThan(2 ** -20);
      }
  });
});
