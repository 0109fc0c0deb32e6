/** Exponentials of matrices, compared with closed forms and with a Taylor series in float64 with many terms. */
import { describe, expect, test } from "bun:test";
import { matrixExp } from "../../src/linalg/exponential/matrix_exp.ts";
import { degrees, planOf, taylor } from "../../src/linalg/exponential/taylor.ts";
import { toDType } from "../../src/ops/copy/cast.ts";
import { zeros } from "../../src/ops/creation/full.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { mul } from "../../src/ops/elementwise/arithmetic.ts";
import { stack } from "../../src/ops/join/cat.ts";
import "../../src/ops/methods.ts";
import { transpose } from "../../src/ops/view/permute.ts";
import { reshape } from "../../src/ops/view/reshape.ts";
import { select } from "../../src/ops/view/slice.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { usually } from "../support/repeats.ts";
import { checkGradients, leaf } from "./gradients.ts";
import { difference, families, identity, type Matrix, matrix, norm1, product, scaled } from "./matrices.ts";
import { epsilonOf, inDType, on, places, ratio, THRESHOLD, toMatrix, toTensor } from "./run.ts";

/** Computes Σ Aᵏ / k! of A / 2ˢ with a norm of at most 1/2, squared s times, in float64. */
function series(a: Matrix): Matrix {
  const squarings = Math.max(0, Math.ceil(Math.log2(norm1(a) * 2 || 1)));
  let [sum, term] = [identity(a.rows), identity(a.rows)];
  const small = scaled(a, 2 ** -squarings);
  for (let k = 1; k < 24; k++) {
    term = scaled(product(term, small), 1 / k);
    sum = { ...sum, values: sum.values.map((value, at) => value + term.values[at]) };
  }
  for (let step = 0; step < squarings; step++) sum = product(sum, sum);
  return sum;
}

/**
 * Bounds ‖exp(A)‖₁. The error of squaring is at most ε n ‖A‖ times this bound, since the condition number is about ‖A‖.
 */
const growth = (a: Matrix): number => Math.exp(norm1(a));

test("the polynomials are Taylor polynomials", () => {
  const size = 20; // the powers of a nilpotent matrix are the superdiagonals
  const shift = matrix(size, size, (i, j) => Number(j === i + 1));
  for (const degree of degrees) {
    const { values } = toMatrix(taylor(degree, toTensor(shift, "float64")));
    let factorial = 1;
    for (let k = 0; k <= degree; k++) {
      factorial *= k || 1;
      expect(Math.abs(values[k] * factorial - 1)).toBeLessThan(1e-14);
    }
    for (let k = degree + 1; k < size; k++) expect(Math.abs(values[k])).toBeLessThan(1e-20);
  }
});

test("the largest norm for a polynomial leaves an error of at most one rounding", () => {
  const factorial = (k: number): number => (k < 2 ? 1 : k * factorial(k - 1));
  for (const dtype of ["float32", "float64"] as const)
    for (const degree of degrees) {
      let norm = 1e-9;
      while (planOf(norm * 1.001, dtype).degree <= degree && planOf(norm * 1.001, dtype).squarings === 0) norm *= 1.001;
      // The rest of the series relative to the result, which is at least exp(−‖A‖).
      if (norm > 1e-8) expect(norm ** (degree + 1) / factorial(degree + 1)).toBeLessThan(epsilonOf[dtype] * norm);
    }
});

for (const { backend, dtype } of places) {
  describe(`matrixExp, ${backend} ${dtype}`, () => {
    const all = backend === "cpu" ? [0, 1, 2, 3, 8, 17, 33, 64, 129] : [0, 1, 3, 16, 33];

    for (const [family, make] of Object.entries(families)) {
      if (/graded|overflow|companion|wilkinson|diagonal/.test(family)) continue; // the exponentials of these overflow
      test(family, () => {
        // A usual run computes sizes over 17 only of random matrices.
        for (const size of usually(all, (own) => own <= 17 || family === "random"))
          for (const norm of [1e-9, 1e-4, 1e-2, 0.3, 1, 2.9, 20]) {
            const own = make(size, size, size + 1);
            const a = inDType(scaled(own, norm / (norm1(own) || 1)), dtype);
            const expected = series(a);
            const got = on(backend, true, () => toMatrix(matrixExp(toTensor(a, dtype))));
            const scale = norm1(expected) || Math.sqrt(growth(a));
            const unit = Math.max(1, size) * Math.max(1, norm) * Math.max(scale, norm > 3 ? Math.sqrt(growth(a)) : 0);
            expect(ratio(norm1(difference(got, expected)), unit, dtype, `matrixExp, ${family}`)).toBeLessThan(
              THRESHOLD,
            );
          }
      });
    }

    test("rotations, large and small decays, and values that are not finite are correct", () => {
      on(backend, true, () => {
        for (const angle of [1e-3, 1, 100]) {
          const got = toMatrix(
            matrixExp(
              tensor(
                [
                  [0, -angle],
                  [angle, 0],
                ],
                { dtype },
              ),
            ),
          ).values;
          const t = dtype === "float32" ? Math.fround(angle) : angle;
          const expected = [Math.cos(t), -Math.sin(t), Math.sin(t), Math.cos(t)];
          for (const [at, value] of expected.entries())
            expect(Math.abs(got[at] - value)).toBeLessThan(THRESHOLD * epsilonOf[dtype] * Math.max(1, angle));
        }
        expect(matrixExp(tensor([[-1e30]], { dtype })).item()).toBe(0);
        expect(matrixExp(tensor([[3e38]], { dtype })).item()).toBe(Number.POSITIVE_INFINITY);
        expect(matrixExp(tensor([[Number.NaN]], { dtype })).item()).toBeNaN();
        expect(matrixExp(tensor([[Number.POSITIVE_INFINITY]], { dtype })).item() as number).not.toBe(1);
      });
    });

    test("a matrix's result does not depend on the others of its batch", () => {
      on(backend, true, () => {
        const norms = [3, 1e-8, 40, 0.2, 1e-3, 1.2, 3, 0, 700, 5e-2];
        const batch = norms.map((norm, at) => {
          const own = families.random(5, 5, at + 1);
          return toTensor(scaled(own, norm / norm1(own)), dtype);
        });
        const all = matrixExp(reshape(stack(batch), [2, 5, 5, 5]));
        expect(all.shape).toEqual([2, 5, 5, 5]);
        const flat = reshape(all, [10, 5, 5]);
        for (const [at, own] of batch.entries())
          expect(select(flat, 0, at).toArray()).toEqual(matrixExp(own).toArray());
      });
    });

    test("empty batches, transposed operands and 16-bit dtypes are correct", () => {
      on(backend, true, () => {
        expect(matrixExp(zeros([0, 3, 3], { dtype })).shape).toEqual([0, 3, 3]);
        expect(matrixExp(zeros([2, 0, 0], { dtype })).shape).toEqual([2, 0, 0]);
        expect(
          matrixExp(
            transpose(
              tensor(
                [
                  [0, 1],
                  [0, 0],
                ],
                { dtype },
              ),
              0,
              1,
            ),
          ).toArray(),
        ).toEqual([
          [1, 0],
          [1, 1],
        ]);
        for (const short of ["float16", "bfloat16"] as const) {
          const half = matrixExp(
            toDType(
              tensor([
                [0, 1],
                [0, 0],
              ]),
              short,
            ),
          );
          expect([half.dtype, half.toArray()]).toEqual([
            short,
            [
              [1, 1],
              [0, 1],
            ],
          ]);
        }
      });
    });
  });
}

describe.each(["reference", "cpu"] as const)("gradients of both orders on %s", (backend) => {
  test.each([1e-3, 0.5, 4])("a matrix of norm %p has gradients of both orders", (norm) => {
    const own = families.random(3, 3, 4);
    const a = leaf(scaled(own, norm / norm1(own)));
    on(backend, true, () => checkGradients((x: Tensor) => mul(matrixExp(x), Math.exp(-norm)), [a]));
  });

  test("a batch has gradients of both orders", () => {
    const a = leaf(families.random(2, 2, 9));
    on(backend, true, () => checkGradients((x: Tensor) => matrixExp(stack([x, mul(x, 3)])), [a]));
  });

  test("a large cotangent keeps its digits", () => {
    const a = leaf(scaled(families.random(3, 3, 4), 0.1));
    on(backend, true, () => {
      const gradientOf = (scale: number): number[] => {
        a.grad = null;
        mul(matrixExp(a), scale).sum().backward();
        return Array.from(a.grad!.dataSync() as Float64Array);
      };
      const [one, large] = [gradientOf(1), gradientOf(2 ** 60)];
      expect(large.map((value) => value * 2 ** -60)).toEqual(one);
    });
  });
});
