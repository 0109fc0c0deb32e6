/** Systems and inverses by Cholesky factors: the residuals of LAPACK's tests of potrs and potri (dpot02, dpot03). */
import { describe, expect, test } from "bun:test";
import { LinAlgError } from "../../src/core/errors.ts";
import { cholesky } from "../../src/linalg/cholesky/cholesky.ts";
import { choleskyInverse, choleskySolve } from "../../src/linalg/cholesky/solve.ts";
import { toDType } from "../../src/ops/copy/cast.ts";
import { eye } from "../../src/ops/creation/eye.ts";
import { zeros } from "../../src/ops/creation/full.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { add } from "../../src/ops/elementwise/arithmetic.ts";
import { stack } from "../../src/ops/join/cat.ts";
import { transpose } from "../../src/ops/view/permute.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { errorOf } from "../support/errors.ts";
import { checkGradients, leaf } from "./gradients.ts";
import { definiteFamilies, difference, families, identity, type Matrix, norm1, product } from "./matrices.ts";
import { inDType, on, places, ratio, THRESHOLD, toMatrix, toTensor } from "./run.ts";

const symmetric = (x: Tensor): Tensor => add(x, transpose(x, -1, -2));

for (const { backend, dtype } of places)
  describe(`systems solved by cholesky, ${backend} ${dtype}`, () => {
    for (const [family, make] of Object.entries(definiteFamilies))
      test.each([false, true])(`choleskySolve and choleskyInverse of ${family}, upper %p, are accurate`, (upper) => {
        for (const size of [1, 2, 7, 16, 33, 64]) {
          const a = inDType(make(size, size + 3), dtype);
          const b = inDType(families.random(size, 5, size), dtype);
          const [x, inverse] = on(backend, true, () => {
            const factor = cholesky(toTensor(a, dtype), { upper });
            return [choleskySolve(toTensor(b, dtype), factor, { upper }), choleskyInverse(factor, { upper })] as const;
          }).map(toMatrix) as [Matrix, Matrix];
          if (!x.values.every(Number.isFinite)) continue; // the solution itself overflows
          const residual = norm1(difference(product(a, x), b));
          const of = `choleskySolve, ${family}`;
          expect(ratio(residual, size * norm1(a) * norm1(x), dtype, of)).toBeLessThan(THRESHOLD);
          if (!inverse.values.every(Number.isFinite)) continue;
          const distance = norm1(difference(product(a, inverse), identity(size)));
          const scale = size * norm1(a) * norm1(inverse);
          expect(ratio(distance, scale, dtype, `choleskyInverse, ${family}`)).toBeLessThan(THRESHOLD);
        }
      });

    test("known values, other triangles, broadcast batches, empty and 16-bit operands are correct", () => {
      on(backend, true, () => {
        const l = tensor(
          [
            [2, Number.NaN],
            [1, 2],
          ],
          { dtype },
        ); // the factor of [[4, 2], [2, 5]]
        expect(choleskySolve(tensor([[8], [12]], { dtype }), l).toArray()).toEqual([[1], [2]]);
        expect(choleskyInverse(l).toArray()).toEqual([
          [0.3125, -0.125],
          [-0.125, 0.25],
        ]);
        expect(choleskyInverse(transpose(l, 0, 1), { upper: true }).toArray()).toEqual([
          [0.3125, -0.125],
          [-0.125, 0.25],
        ]);
        const sides = tensor(
          [
            [[8], [12]],
            [[4], [2]],
            [[2], [5]],
          ],
          { dtype },
        );
        expect(choleskySolve(sides, l).toArray()).toEqual([
          [[1], [2]],
          [[1], [0]],
          [[0], [1]],
        ]);
        expect(choleskySolve(tensor([[8], [12]], { dtype }), stack([l, l])).shape).toEqual([2, 2, 1]);
        for (const shape of [
          [0, 0],
          [3, 0, 0],
          [0, 2, 2],
        ]) {
          expect(choleskyInverse(zeros(shape, { dtype })).shape).toEqual(shape);
          expect(choleskySolve(zeros([...shape.slice(0, -1), 4], { dtype }), zeros(shape, { dtype })).shape).toEqual([
            ...shape.slice(0, -1),
            4,
          ]);
        }
        const short = toDType(l, "float16");
        const half = choleskySolve(toDType(tensor([[8], [12]]), "float16"), short);
        expect([half.dtype, half.toArray()]).toEqual(["float16", [[1], [2]]]);
        expect(choleskyInverse(short).dtype).toBe("float16");
      });
    });

    test("the inverse of a singular factor is an error, and solving with it gives infinity or NaN", () => {
      on(backend, true, () => {
        const bad = tensor(
          [
            [
              [1, 0],
              [0, 1],
            ],
            [
              [1, 0],
              [3, 0],
            ],
          ],
          { dtype },
        );
        const error = errorOf(() => choleskyInverse(bad).dataSync()) as LinAlgError;
        expect(error).toBeInstanceOf(LinAlgError);
        expect(error.message).toBe(
          "[choleskyInverse] the matrix at [1] of the batch is singular: element 2 of the diagonal is 0",
        );
        expect([error.batch, error.pivot]).toEqual([[1], 2]);
        expect(
          choleskySolve(tensor([[1], [1]], { dtype }), bad)
            .dataSync()
            .some((value) => !Number.isFinite(value)),
        ).toBe(true);
      });
    });
  });

test("incompatible shapes are rejected", () => {
  expect(() => choleskySolve(zeros([3, 1]), eye(2))).toThrow("[choleskySolve] expected b with 2 rows");
  expect(() => choleskySolve(zeros([3]), eye(3))).toThrow("[choleskySolve]");
  expect(() => choleskySolve(zeros([2, 1], { dtype: "float64" }), eye(2))).toThrow("[choleskySolve]");
  expect(() => choleskyInverse(zeros([2, 3]))).toThrow("[choleskyInverse] expected l to be square");
});

describe.each(["reference", "cpu"] as const)("gradients of both orders on %s", (backend) => {
  const l = leaf(definiteFamilies.random(3, 1));
  const b = leaf(families.random(3, 2, 5));

  test.each([false, true])("gradients of choleskySolve equal finite differences, upper %p", (upper) => {
    on(backend, true, () => checkGradients((x, y) => choleskySolve(x, y, { upper }), [b, l]));
    on(backend, true, () =>
      checkGradients((x, y) => choleskySolve(x, cholesky(symmetric(y), { upper }), { upper }), [b, l]),
    );
  });

  test.each([false, true])("gradients of choleskyInverse equal finite differences, upper %p", (upper) => {
    on(backend, true, () => checkGradients((y) => choleskyInverse(stack([y, symmetric(y)]), { upper }), [l]));
  });
});
