/** Functions of gammaPair, compared with finite sums, with each other, and with the reference backend. */
import { describe, expect, test } from "bun:test";
import {
  type DType,
  gammainc,
  gammaincc,
  polygamma,
  type Tensor,
  tensor,
  toDType,
  withBackend,
  zeta,
} from "../../../src/index.ts";
import { tested } from "../run.ts";
import { testSameBits } from "../same_bits.ts";
import { hash, Random } from "../samples.ts";

const listOf = (x: Tensor): number[] => [...(x.dataSync() as Float64Array)];

/** Q(a, x) of a whole a: e⁻ˣ Σ xᵏ/k! for k < a. NIST Digital Library of Mathematical Functions, 8.4.10. */
function upperOf(a: number, x: number): number {
  let [term, sum] = [Math.exp(-x), 0];
  for (let k = 0; k < a; k++) {
    sum += term;
    term *= x / (k + 1);
  }
  return sum;
}

const accuracies = [
  ["float64", 2e-13],
  ["float32", 4e-6],
] as const;

describe.each(tested)("incomplete gamma functions on %s", (backend) => {
  test.each(accuracies.filter(([dtype]) => backend !== "metal" || dtype !== "float64"))(
    "whole shapes in %s are accurate, in drawn numbers of elements",
    (dtype: DType, tolerance) =>
      withBackend(backend, () => {
        const random = new Random(hash(dtype));
        for (const count of [1, 3, 7, 65, 131]) {
          const a = Array.from({ length: count }, () => random.integer(1, 50));
          const x = a.map((shape) => Math.fround(2 * shape * random.next() + 0.01));
          const [shapes, places] = [tensor(a, { dtype }), tensor(x, { dtype })];
          const [lower, upper] = [listOf(gammainc(shapes, places)), listOf(gammaincc(shapes, places))];
          for (let at = 0; at < count; at++) {
            const expected = upperOf(a[at], x[at]);
            expect(Math.abs(upper[at] - expected)).toBeLessThan(tolerance);
            expect(Math.abs(lower[at] - (1 - expected))).toBeLessThan(tolerance);
          }
        }
      }),
  );

  test("limits are right, and results are NaN outside of the domain", () =>
    withBackend(backend, () => {
      const a = tensor([0, 0, 2, Infinity, Infinity, -1, 2, NaN, 2, 0]);
      const x = tensor([0, 1, Infinity, 1, Infinity, 1, -1, 1, 0, Infinity]);
      expect(listOf(gammainc(a, x))).toEqual([NaN, 1, 1, 0, NaN, NaN, NaN, NaN, 0, 1]);
      expect(listOf(gammaincc(a, x))).toEqual([NaN, 0, 0, 1, NaN, NaN, NaN, NaN, 1, 0]);
    }));
});

test("fractional shapes agree with the reference backend, relative to the smaller side", () => {
  const random = new Random(5);
  const a = Array.from({ length: 300 }, () => 10 ** (5 * random.next() - 2));
  const x = a.map((shape) => shape * 4 ** (2 * random.next() - 1));
  const on = (backend: "cpu" | "reference") =>
    withBackend(backend, () => {
      const operands = [tensor(a, { dtype: "float64" }), tensor(x, { dtype: "float64" })] as const;
      return [listOf(gammainc(...operands)), listOf(gammaincc(...operands))] as const;
    });
  const [found, expected] = [on("cpu"), on("reference")];
  for (const side of [0, 1] as const)
    for (const [at, value] of found[side].entries())
      expect(Math.abs(value - expected[side][at])).toBeLessThanOrEqual(1e-12 + 1e-11 * expected[side][at]);
});

const drawnPairs = (random: Random, count: number) => {
  const a = Array.from({ length: count }, () => 1 + 10 ** (3 * random.next() - 2));
  return [a, a.map(() => 10 ** (4 * random.next() - 2))] as const;
};

describe("zeta and polygamma agree with the reference backend", () => {
  test.each([
    ["float64", 1e-13],
    ["float32", 3e-7],
    ["bfloat16", 2 ** -8],
  ] as const)("in %s, in drawn numbers of elements", (dtype, tolerance) => {
    const random = new Random(hash(`zeta ${dtype}`));
    for (const count of [1, 7, 64, 131]) {
      const [s, q] = drawnPairs(random, count).map((values) => listOf(toDType(tensor(values, { dtype }), "float64")));
      const negated = q!.map((value, at) => (at % 5 === 4 ? value - 7.3 : value));
      const signed = listOf(toDType(tensor(negated, { dtype }), "float64"));
      const of = (backend: "cpu" | "reference", as: DType) =>
        withBackend(backend, () => {
          const [first, second, x] = [s!, q!, signed].map((values) => tensor(values, { dtype: as }));
          const results = [zeta(first!, second!), ...[1, 2, 3, 4, 5, 9].map((n) => polygamma(n, x!))];
          return results.map((result) => listOf(toDType(result, "float64")));
        });
      const [found, expected] = [of("cpu", dtype), of("reference", "float64")];
      for (const [at, values] of found.entries())
        for (const [place, value] of values.entries()) {
          if (at > 0 && signed[place]! < 0) continue; // conditioned badly near integers: see special.test.ts
          const exact = expected[at]![place]!;
          expect(Math.abs(value - exact)).toBeLessThanOrEqual(tolerance * Math.abs(exact) + 1e-37);
        }
    }
  });

  test("zeta is infinite at 1, and NaN outside of its domain", () => {
    const [s, q] = [tensor([1, 1, 0.5, 2, 2, NaN, 2, 2]), tensor([1, 0, 1, 0, -1.5, 1, NaN, 1])];
    const values = listOf(withBackend("cpu", () => zeta(s, q)));
    expect(values.slice(0, 7)).toEqual([Infinity, NaN, NaN, NaN, NaN, NaN, NaN]);
    expect(values[7]).toBeCloseTo(Math.PI ** 2 / 6, 6);
  });
});

describe("functions of gammaPair have the same bits", () => {
  testSameBits((backend) => {
    const random = new Random(3);
    const [a, x] = drawnPairs(random, random.integer(1, backend === "cpu" ? 5000 : 300)).map((each) => tensor(each));
    const pairs = [gammainc, gammaincc, zeta].map((compute) => compute(a!, x!));
    return [...pairs, polygamma(1, x!), polygamma(6, x!)].map((result) => result.dataSync());
  });
});
