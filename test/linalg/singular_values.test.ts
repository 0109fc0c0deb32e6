/** Functions based on singular values: pseudoinverses, ranks, condition numbers, norms. */
import { describe, expect, test } from "bun:test";
import { LinAlgError, ShapeError } from "../../src/core/errors.ts";
import { cond } from "../../src/linalg/svd/cond.ts";
import { type MatrixNormOrder, matrixNorm } from "../../src/linalg/svd/matrix_norm.ts";
import { matrixRank } from "../../src/linalg/svd/matrix_rank.ts";
import { pinv } from "../../src/linalg/svd/pinv.ts";
import { eye } from "../../src/ops/creation/eye.ts";
import { ones, zeros } from "../../src/ops/creation/full.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { mul } from "../../src/ops/elementwise/arithmetic.ts";
import { backward } from "../../src/ops/gradient/backward.ts";
import { stack } from "../../src/ops/join/cat.ts";
import { matmul } from "../../src/ops/matmul/matmul.ts";
import { transpose } from "../../src/ops/view/permute.ts";
import { reshape } from "../../src/ops/view/reshape.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { errorOf } from "../support/errors.ts";
import { checkGradients, leaf } from "./gradients.ts";
import { difference, families, type Matrix, matrix, norm1, product, transposed } from "./matrices.ts";
import { inDType, on, places, ratio, THRESHOLD, toMatrix, toTensor } from "./run.ts";

const shapes = [
  [1, 1],
  [5, 5],
  [9, 4],
  [4, 9],
  [20, 20],
] as const;
const orders: readonly MatrixNormOrder[] = [
  "fro",
  "nuc",
  2,
  -2,
  1,
  -1,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
];
const numbers = (x: Tensor): number[] => Array.from(x.dataSync() as Float64Array);

for (const { backend, dtype } of places)
  describe(`functions of singular values, ${backend} ${dtype}`, () => {
    // Sums, products and comparisons of singular values may run on any backend.
    const run = <Result>(body: () => Result): Result => on(backend, backend !== "metal", body);

    for (const family of ["random", "rank-deficient", "orthogonal", "zero", "near overflow", "near underflow"])
      test(`pinv of ${family} is accurate`, () => {
        for (const [rows, columns] of shapes) {
          const a = inDType(families[family](rows, columns, rows + 3), dtype);
          const p = run(() => toMatrix(pinv(toTensor(a, dtype))));
          const [ap, pa] = [product(a, p), product(p, a)];
          const size = Math.max(rows, columns) * norm1(a) * norm1(p);
          const expectSmall = (x: Matrix, y: Matrix, scale: number): void =>
            expect(ratio(norm1(difference(x, y)), size * scale, dtype, `pinv, ${family}`)).toBeLessThan(THRESHOLD);
          expectSmall(product(ap, a), a, norm1(a));
          expectSmall(product(pa, p), p, norm1(p));
          expectSmall(ap, transposed(ap), 1);
          expectSmall(pa, transposed(pa), 1);
        }
      });

    test("tolerances and symmetric matrices are supported", () => {
      const diagonal = toTensor(
        matrix(3, 3, (i, j) => (i === j ? [1, -(2 ** -10), 2 ** -40][i] : 0)),
        dtype,
      );
      run(() => {
        const rank = (options = {}): unknown => matrixRank(diagonal, options).item();
        const isSingle = dtype === "float32";
        expect([rank(), rank({ atol: 2 ** -11 }), rank({ atol: 2 ** -10 }), rank({ rtol: 0.5 })]).toEqual(
          isSingle ? [2n, 2n, 1n, 1n] : [3n, 2n, 1n, 1n],
        );
        expect([rank({ atol: 0 }), rank({ atol: 1e-30 }), rank({ rtol: 0 })]).toEqual(
          isSingle ? [2n, 3n, 3n] : [3n, 3n, 3n],
        );
        expect(rank({ hermitian: true, atol: 2 ** -11 })).toBe(2n);
        expect(pinv(diagonal, { atol: 2 ** -11 }).toArray()).toEqual([
          [1, 0, 0],
          [0, -1024, 0],
          [0, 0, 0],
        ]);
        const own = pinv(diagonal, { atol: 2 ** -11, hermitian: true });
        expect(numbers(own).map((value) => value + 0)).toEqual([1, 0, 0, 0, -1024, 0, 0, 0, 0]);
      });
    });

    test("matrixRank finds ranks", () => {
      run(() => {
        for (const [rows, columns] of shapes) {
          const rankOf = (family: string): unknown =>
            matrixRank(toTensor(inDType(families[family](rows, columns, 5), dtype), dtype)).item();
          const least = Math.min(rows, columns);
          expect([rankOf("random"), rankOf("zero"), rankOf("rank-deficient")].map(Number)).toEqual([
            least,
            0,
            Math.ceil(least / 2),
          ]);
        }
        const batch = matrixRank(stack([eye(2, { dtype }), ones([2, 2], { dtype }), zeros([2, 2], { dtype })]));
        expect([batch.dtype, batch.toArray()]).toEqual(["int64", [2n, 1n, 0n]]);
        expect(matrixRank(zeros([2, 0, 3], { dtype })).toArray()).toEqual([0n, 0n]);
      });
    });

    test("norms equal their definitions", () => {
      const a = families.random(4, 3, 8);
      const at = (i: number, j: number): number => Math.abs(inDType(a, dtype).values[i * 3 + j]);
      const columns = [0, 1, 2].map((j) => [0, 1, 2, 3].reduce((all, i) => all + at(i, j), 0));
      const rows = [0, 1, 2, 3].map((i) => [0, 1, 2].reduce((all, j) => all + at(i, j), 0));
      const expected: Readonly<Record<string, number>> = {
        fro: Math.hypot(...a.values),
        1: Math.max(...columns),
        "-1": Math.min(...columns),
        Infinity: Math.max(...rows),
        "-Infinity": Math.min(...rows),
      };
      const diagonal = matrix(3, 4, (i, j) => (i === j ? [3, -5, 0.25][i] : 0));
      run(() => {
        const normOf = (x: Matrix, ord: MatrixNormOrder): number => Number(matrixNorm(toTensor(x, dtype), ord).item());
        for (const [ord, value] of Object.entries(expected))
          expect(normOf(a, ord === "fro" ? ord : Number(ord)) / value).toBeCloseTo(1, dtype === "float64" ? 14 : 6);
        expect(["nuc" as const, 2, -2].map((ord) => normOf(diagonal, ord))).toEqual([8.25, 5, 0.25]);
        const batch = reshape(tensor([1, 2, 3, 4, 5, 6, 7, 8], { dtype }), [2, 2, 2]);
        expect(matrixNorm(batch, 1, [0, 2], true).toArray()).toEqual([[[8], [12]]]);
        expect(matrixNorm(batch, 2, [0, 2], true).shape).toEqual([1, 2, 1]);
        // The nuclear norm of 2 x 2 matrices: √(sum of squares + 2 |det|).
        for (const dim of [
          [0, 2],
          [2, 0],
        ])
          for (const [at, value] of numbers(matrixNorm(batch, "nuc", dim)).entries())
            expect(value / Math.sqrt([74, 146][at])).toBeCloseTo(1, 6);
        const long = matrixNorm(batch, { ord: "fro", dtype: "float64" });
        expect([long.dtype, numbers(long)]).toEqual(["float64", [Math.sqrt(30), Math.sqrt(174)]]);
      });
    });

    test("norms of empty matrices and of 16-bit dtypes are correct", () => {
      run(() => {
        for (const shape of [
          [0, 0],
          [0, 3],
          [3, 0],
        ])
          for (const ord of ["fro", "nuc", 2, 1, Number.POSITIVE_INFINITY] as const)
            expect(matrixNorm(zeros(shape, { dtype }), ord).item()).toBe(0);
        expect(errorOf(() => matrixNorm(zeros([0, 3], { dtype }), -2))).toBeInstanceOf(ShapeError);
        expect(errorOf(() => matrixNorm(zeros([2, 3], { dtype }), 1, [0, -2]))).toBeInstanceOf(ShapeError);
        expect(errorOf(() => matrixNorm(zeros([2, 3], { dtype }), 1, [0]))).toBeInstanceOf(ShapeError);
        for (const ord of orders) {
          const own = matrixNorm(eye(2, { dtype: "float16" }), ord);
          expect([own.dtype, Number(own.item())]).toEqual([
            "float16",
            ord === "nuc" ? 2 : ord === "fro" ? 1.4140625 : 1,
          ]);
        }
      });
    });

    test("condition numbers are correct", () => {
      run(() => {
        const diagonal = toTensor(
          matrix(2, 2, (i, j) => (i === j ? [-4, 0.5][i] : 0)),
          dtype,
        );
        const of = (x: Tensor, p: MatrixNormOrder | null): number => Number(cond(x, p).item());
        expect([null, 2, -2, 1, -1, Number.POSITIVE_INFINITY].map((p) => of(diagonal, p))).toEqual([
          8, 8, 0.125, 8, 0.125, 8,
        ]);
        expect(of(diagonal, "nuc")).toBe(4.5 * 2.25);
        expect(of(diagonal, "fro") / (16.25 / 2)).toBeCloseTo(1, 6);
        // PyTorch's results for matrices that are singular, not square, empty, not finite.
        const zero = zeros([2, 2], { dtype });
        expect([2, -2, "nuc" as const].map((p) => of(zero, p))).toEqual([Number.NaN, Number.NaN, Number.NaN]);
        for (const p of ["fro", 1, -1, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY] as const) {
          expect(of(zero, p)).toBe(Number.POSITIVE_INFINITY);
          expect(
            of(
              tensor(
                [
                  [1, 2],
                  [2, 4],
                ],
                { dtype },
              ),
              p,
            ),
          ).toBe(Number.POSITIVE_INFINITY);
          expect(of(tensor([1, 0, 0, 0], { dtype, shape: [2, 2] }), p)).toBe(Number.POSITIVE_INFINITY);
          expect(errorOf(() => cond(ones([2, 3], { dtype }), p))).toBeInstanceOf(ShapeError);
        }
        expect(of(ones([2, 3], { dtype }), null)).toBeGreaterThan(1e6);
        for (const p of orders) expect(cond(zeros([3, 0, 0], { dtype }), p).toArray()).toEqual([0, 0, 0]);
        const bad = tensor(
          [
            [1, 2],
            [Number.NaN, 4],
          ],
          { dtype },
        );
        expect(errorOf(() => of(bad, 2))).toBeInstanceOf(LinAlgError);
        expect((errorOf(() => numbers(pinv(bad))) as Error).message).toStartWith("[pinv] the matrix has elements");
        expect((errorOf(() => numbers(matrixRank(bad))) as Error).message).toStartWith("[matrixRank] the matrix has");
      });
    });
  });

describe.each(["reference", "cpu"] as const)("gradients of both orders on %s", (backend) => {
  const run = (compute: (x: Tensor) => Tensor, x: Tensor): void =>
    on(backend, true, () => checkGradients(compute, [x]));
  const square = leaf(families.random(3, 3, 3));

  for (const [rows, columns] of [
    [3, 3],
    [4, 2],
    [2, 4],
  ] as const) {
    const a = leaf(families.random(rows, columns, 3));
    const what = `${rows} x ${columns}`;
    test(`gradients of pinv equal finite differences, ${what}`, () => run((x) => pinv(x), a));
    for (const ord of orders)
      test(`gradients of matrixNorm equal finite differences, ${ord}, ${what}`, () =>
        run((x) => reshape(matrixNorm(x, ord), [1, 1]), a));
  }

  test("pinv with a constant rank has gradients", () =>
    run((x) => pinv(matmul(x, transpose(x, 0, 1)), { rtol: 1e-10 }), leaf(families.random(3, 1, 3))));
  test("pinv of symmetric matrices has gradients", () =>
    run((x) => pinv(matmul(x, transpose(x, 0, 1)), { hermitian: true }), square));
  test("pinv of a batch has gradients", () => run((x) => pinv(stack([x, mul(x, x)])), square));
  for (const p of orders) test(`cond has gradients, ${p}`, () => run((x) => reshape(cond(x, p), [1, 1]), square));

  // PyTorch's: equal sums and equal singular values share a gradient.
  const shares: Readonly<Record<string, readonly [of: number[][], gradient: number[][]]>> = {
    fro: [
      [
        [0, 0],
        [0, 0],
      ],
      [
        [0, 0],
        [0, 0],
      ],
    ],
    nuc: [
      [
        [0, 0],
        [0, 0],
      ],
      [
        [1, 0],
        [0, 1],
      ],
    ],
    "2": [
      [
        [0, 0],
        [0, 0],
      ],
      [
        [0.5, 0],
        [0, 0.5],
      ],
    ],
    "-2": [
      [
        [0, 0],
        [0, 0],
      ],
      [
        [0.5, 0],
        [0, 0.5],
      ],
    ],
    "1": [
      [
        [1, -2],
        [2, 1],
      ],
      [
        [0.5, -0.5],
        [0.5, 0.5],
      ],
    ],
    "-1": [
      [
        [1, -2],
        [2, 1],
      ],
      [
        [0.5, -0.5],
        [0.5, 0.5],
      ],
    ],
    Infinity: [
      [
        [1, -2],
        [2, 1],
      ],
      [
        [0.5, -0.5],
        [0.5, 0.5],
      ],
    ],
    "-Infinity": [
      [
        [1, -2],
        [2, 1],
      ],
      [
        [0.5, -0.5],
        [0.5, 0.5],
      ],
    ],
  };
  for (const [ord, [values, gradient]] of Object.entries(shares))
    test(`matrixNorm has a gradient at a kink, ${ord}`, () => {
      on(backend, true, () => {
        const a = tensor(values, { dtype: "float64", requiresGrad: true });
        backward(matrixNorm(a, ord === "fro" || ord === "nuc" ? ord : Number(ord)));
        expect(a.grad!.toArray()).toEqual(gradient);
      });
    });
});
