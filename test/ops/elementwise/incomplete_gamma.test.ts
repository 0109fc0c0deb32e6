/** The incomplete gamma functions, compared with finite sums, with each other, and with the reference backend. */
import { describe, expect, test } from "bun:test";
import { type DType, gammainc, gammaincc, type Tensor, tensor, withBackend } from "../../../src/index.ts";
import { tested } from "../run.ts";
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
