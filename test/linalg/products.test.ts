/** Products, powers and norms, compared with their definitions in float64. */
import { describe, expect, test } from "bun:test";
import { ArgumentError, DTypeError, LinAlgError, ShapeError } from "../../src/core/errors.ts";
import { vectorNorm } from "../../src/linalg/norms/vector_norm.ts";
import { diagonal } from "../../src/linalg/products/diagonal.ts";
import { matrixPower } from "../../src/linalg/products/matrix_power.ts";
import { bestSplits, multiDot } from "../../src/linalg/products/multi_dot.ts";
import { vander } from "../../src/linalg/products/vander.ts";
import { vecdot } from "../../src/linalg/products/vecdot.ts";
import { toDType } from "../../src/ops/copy/cast.ts";
import { ones, zeros } from "../../src/ops/creation/full.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { grad } from "../../src/ops/gradient/backward.ts";
import { stack } from "../../src/ops/join/cat.ts";
import { corrcoef, cov } from "../../src/ops/matmul/covariance.ts";
import { cross } from "../../src/ops/matmul/cross.ts";
import { kron } from "../../src/ops/matmul/kron.ts";
import { trace } from "../../src/ops/reduction/trace.ts";
import "../../src/ops/methods.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { errorOf } from "../support/errors.ts";
import { checkGradients, leaf } from "./gradients.ts";
import { definiteFamilies, difference, families, identity, type Matrix, matrix, norm1, product } from "./matrices.ts";
import { inDType, on, places, ratio, THRESHOLD, toMatrix, toTensor } from "./run.ts";

const order = ["random", "near overflow", "near underflow", "graded rows", "hilbert", "zero"] as const;
const absolute = (x: Matrix): number[] => Array.from(x.values, Math.abs);
const largest = (x: readonly number[]): number => x.reduce((most, value) => Math.max(most, value), 0);

/** Computes (Σ |x|ᵖ)^(1/p), after division by the largest number. */
function normOf(x: Matrix, p: number): number {
  const sizes = absolute(x);
  const most = largest(sizes);
  if (p === 0) return sizes.filter((size) => size > 0).length;
  if (p === Number.POSITIVE_INFINITY) return most;
  if (p === Number.NEGATIVE_INFINITY) return Math.min(...sizes);
  if (p < 0 && sizes.includes(0)) return 0;
  const unit = p < 0 ? Math.min(...sizes) : most || 1;
  return unit * sizes.reduce((sum, size) => sum + (size / unit) ** p, 0) ** (1 / p);
}

for (const { backend, dtype } of places) {
  describe(`norms and products of matrices, ${backend} ${dtype}`, () => {
    for (const family of order)
      test(`vectorNorm of ${family} is accurate`, () => {
        const a = inDType(families[family](7, 9, 3), dtype);
        on(backend, true, () => {
          for (const ord of [0, 0.5, 1, 1.5, 2, 3, 7, -1, -2, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
            const expected = normOf(a, ord);
            if (dtype === "float32" && expected > 3e38) continue;
            const got = vectorNorm(toTensor(a, dtype), ord).item();
            expect(
              ratio(
                Math.abs((got as number) - expected),
                expected * Math.max(1, Math.abs(1 / (ord || 1))),
                dtype,
                `vectorNorm, ${family}`,
              ),
            ).toBeLessThan(THRESHOLD);
          }
        });
      });

    test("vectorNorm of numbers whose squares overflow or underflow is accurate", () => {
      const scales = dtype === "float32" ? [1e30, 1e-30] : [1e150, 1e-150, 1e300, 1e-300];
      on(backend, true, () => {
        for (const scale of scales)
          for (const ord of [2, 3, 1.5]) {
            const x = tensor([3 * scale, -4 * scale], { dtype, requiresGrad: true });
            const norm = vectorNorm(x, ord);
            const expected = (3 ** ord + 4 ** ord) ** (1 / ord);
            expect(Math.abs(norm.item() / scale / expected - 1)).toBeLessThan(dtype === "float32" ? 1e-6 : 1e-14);
            const [gradient] = grad([norm], [x]) as [Tensor];
            const [first, second] = gradient.toArray() as number[];
            expect(Math.abs(first - (3 / expected) ** (ord - 1))).toBeLessThan(1e-6);
            expect(Math.abs(second + (4 / expected) ** (ord - 1))).toBeLessThan(1e-6);
          }
      });
    });

    test("vectorNorm works along axes and without elements, and has a gradient at zero", () => {
      on(backend, true, () => {
        const x = tensor(
          [
            [3, 4],
            [6, 8],
          ],
          { dtype },
        );
        expect(vectorNorm(x, { dim: 1 }).toArray()).toEqual([5, 10]);
        expect(vectorNorm(x, 1, [0, 1], true).toArray()).toEqual([[21]]);
        expect(vectorNorm(zeros([0], { dtype })).item()).toBe(0);
        expect(vectorNorm(toDType(x, "float16"), { dim: 0, ord: 1 }).toArray()).toEqual([9, 12]);
        for (const ord of [0, 0.5, 1, 1.5, 2, 3, Number.POSITIVE_INFINITY]) {
          const zero = zeros([3], { dtype, requiresGrad: true });
          const [gradient] = grad([vectorNorm(zero, ord)], [zero]) as [Tensor];
          expect(gradient.toArray()).toEqual([0, 0, 0]);
        }
      });
    });

    test("matrixPower is accurate", () => {
      on(backend, true, () => {
        const fibonacci = tensor(
          [
            [1, 1],
            [1, 0],
          ],
          { dtype },
        );
        expect(matrixPower(fibonacci, 30).toArray()).toEqual([
          [1346269, 832040],
          [832040, 514229],
        ]);
        expect(matrixPower(stack([fibonacci, fibonacci]), 0).toArray()).toEqual([
          [
            [1, 0],
            [0, 1],
          ],
          [
            [1, 0],
            [0, 1],
          ],
        ]);
        expect(matrixPower(fibonacci, 1).toArray()).toEqual([
          [1, 1],
          [1, 0],
        ]);
        const sheared = matrixPower(
          tensor(
            [
              [2, 1],
              [0, 1],
            ],
            { dtype },
          ),
          -3,
        ).toArray();
        expect(sheared).toEqual([
          [0.125, -0.875],
          [0, 1],
        ]);
        expect(matrixPower(zeros([2, 0, 0], { dtype }), 3).shape).toEqual([2, 0, 0]);
        expect(matrixPower(toDType(fibonacci, "bfloat16"), 5).toArray()).toEqual([
          [8, 5],
          [5, 3],
        ]);
        const own = inDType(families.orthogonal(17, 17, 5), dtype);
        let expected = identity(17);
        for (let step = 0; step < 13; step++) expected = product(expected, own);
        const got = toMatrix(matrixPower(toTensor(own, dtype), 13));
        expect(
          ratio(norm1(difference(got, expected)), norm1(expected) * 17, dtype, "matrixPower, orthogonal"),
        ).toBeLessThan(THRESHOLD);
      });
    });

    test("multiDot is accurate", () => {
      const sizes = [5, 30, 2, 17, 9, 1, 12];
      const all = sizes.slice(1).map((columns, at) => inDType(families.random(sizes[at], columns, at), dtype));
      const expected = all.reduce(product);
      on(backend, true, () => {
        const tensors = all.map((own) => toTensor(own, dtype));
        const got = toMatrix(multiDot(tensors));
        expect([got.rows, got.columns]).toEqual([5, 12]);
        expect(
          ratio(
            norm1(difference(got, expected)),
            all.reduce((most, own) => most * norm1(own), 1),
            dtype,
          ),
        ).toBeLessThan(THRESHOLD);
        const [row, square, column] = [
          tensor([1, 2], { dtype }),
          tensor(
            [
              [1, 0],
              [0, 3],
            ],
            { dtype },
          ),
          tensor([[1], [1]], { dtype }),
        ];
        expect(multiDot([row, square, tensor([1, 1], { dtype })]).toArray()).toBe(7);
        expect(multiDot([row, square]).toArray()).toEqual([1, 6]);
        expect(multiDot([square, column]).toArray()).toEqual([[1], [3]]);
        expect(multiDot([row, column]).toArray()).toEqual([7 - 4]);
      });
    });

    test("vecdot, vander and diagonal are accurate", () => {
      on(backend, true, () => {
        const x = tensor(
          [
            [1, 2],
            [3, 4],
          ],
          { dtype },
        );
        expect(vecdot(x, tensor([1, 10], { dtype })).toArray()).toEqual([21, 43]);
        expect(vecdot(x, x, { dim: 0 }).toArray()).toEqual([10, 20]);
        expect(vecdot(zeros([3, 0], { dtype }), zeros([3, 0], { dtype })).toArray()).toEqual([0, 0, 0]);
        expect(vander(x, { n: 3 }).toArray()).toEqual([
          [
            [1, 1, 1],
            [1, 2, 4],
          ],
          [
            [1, 3, 9],
            [1, 4, 16],
          ],
        ]);
        expect(vander(tensor([0, 2], { dtype })).toArray()).toEqual([
          [1, 0],
          [1, 2],
        ]);
        expect(diagonal(stack([x, x])).toArray()).toEqual([
          [1, 4],
          [1, 4],
        ]);
        expect(diagonal(x, { offset: 1 }).toArray()).toEqual([2]);
      });
    });
  });
}

test("multiDot uses the order with the fewest multiplications", () => {
  // The example of the book: ((A₁ (A₂ A₃)) ((A₄ A₅) A₆)).
  const splits = bestSplits([30, 35, 15, 5, 10, 20, 25]);
  expect([splits[0][5], splits[0][2], splits[3][5]]).toEqual([2, 0, 4]);
});

describe("gradients of both orders", () => {
  const a = leaf(families.random(3, 3, 1));
  const b = leaf(families.random(3, 2, 5));
  const v = leaf(families.random(1, 3, 7));

  test.each([0.5, 1.5, 2, 3, -2])("vectorNorm of order %p has gradients of both orders", (ord) => {
    checkGradients((x) => vectorNorm(x, { ord, dim: 1 }), [a]);
  });

  test.each([1.5, 3])("second derivatives of a norm of order %p are 0 at zero elements", (ord) => {
    const x = tensor([0, 2, -1], { dtype: "float64", requiresGrad: true });
    const [first] = grad([vectorNorm(x, ord)], [x], { createGraph: true }) as [Tensor];
    const [second] = grad([first.sum()], [x]) as [Tensor];
    expect((second.toArray() as number[]).every(Number.isFinite)).toBe(true);
    expect((second.toArray() as number[])[0]).toBe(0);
  });

  test("matrixPower, multiDot, vecdot and vander have gradients of both orders", () => {
    checkGradients((x) => matrixPower(stack([x, x.mul(2)]), 5), [a]);
    checkGradients((x) => matrixPower(x, -2), [leaf(definiteFamilies.random(3, 2))]);
    checkGradients((x, y, row) => multiDot([row.reshape([3]), x, x, y]), [a, b, v]);
    checkGradients((x, row) => vecdot(x, row).reshape([1, 3]), [a, v]);
    checkGradients((x) => vander(x), [v]);
  });

  test("kron, cross, cov, corrcoef and trace have gradients of both orders", () => {
    checkGradients((x, y) => kron(x, y), [a, b]);
    checkGradients((x, row) => cross(x, row), [a, v]);
    checkGradients((x) => cov(x), [a]);
    checkGradients((x) => corrcoef(x), [b]);
    checkGradients((x) => trace(x.mul(x)).reshape([1, 1]), [a]);
  });
});

describe("functions reject invalid matrices", () => {
  const square = eyeOf(2);
  test.each([
    ["a matrix that is not square", () => matrixPower(zeros([2, 3]), 2), ShapeError, "to be square, got float32[2, 3]"],
    [
      "a negative power of integers",
      () => matrixPower(ones([2, 2], { dtype: "int32" }), -1),
      DTypeError,
      "expected floats",
    ],
    ["a negative power of a singular matrix", () => matrixPower(ones([2, 2]), -2), LinAlgError, "pivot 2"],
    ["half a power", () => matrixPower(square, -1.5), ArgumentError, "a whole number"],
    ["a power of bools", () => matrixPower(zeros([2, 2], { dtype: "bool" }), 2), DTypeError, "expected numbers"],
    ["one tensor", () => multiDot([square]), ArgumentError, "at least two tensors, got 1"],
    ["a vector in the middle", () => multiDot([square, ones([2]), square]), ShapeError, "tensor 1 to be a matrix"],
    ["inner sizes", () => multiDot([square, ones([3, 2])]), ShapeError, "tensor 1 with 2 rows after float32[2, 2]"],
    ["one column", () => vander(ones([3]), { n: 1 }), ArgumentError, "at least 2, got 1"],
    ["a scalar", () => vander(ones([])), ShapeError, "at least one axis"],
    ["dtypes that differ", () => vecdot(square, ones([2], { dtype: "float64" })), DTypeError, "one dtype"],
    ["integers", () => vectorNorm(ones([2], { dtype: "int32" })), DTypeError, "expected floats"],
  ] as const)("%s is rejected", (_, call, kind, message) => {
    const error = errorOf(call);
    expect(error).toBeInstanceOf(kind);
    expect(error.message).toContain(message);
  });
});

function eyeOf(size: number): Tensor {
  return toTensor(
    matrix(size, size, (i, j) => Number(i === j)),
    "float32",
  );
}
