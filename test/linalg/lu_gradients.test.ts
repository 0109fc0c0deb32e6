/** Gradients of both orders of functions based on LU, and determinants compared with closed forms. */
import { describe, expect, test } from "bun:test";
import { det, logdet, slogdet } from "../../src/linalg/lu/determinant.ts";
import { lu, luFactor } from "../../src/linalg/lu/factor.ts";
import { inv } from "../../src/linalg/lu/inverse.ts";
import { luSolve, solve } from "../../src/linalg/lu/solve.ts";
import { tensorInv, tensorSolve } from "../../src/linalg/lu/tensor.ts";
import { zeros } from "../../src/ops/creation/full.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { add, mul } from "../../src/ops/elementwise/arithmetic.ts";
import { grad } from "../../src/ops/gradient/backward.ts";
import { stack } from "../../src/ops/join/cat.ts";
import { matmul } from "../../src/ops/matmul/matmul.ts";
import { sum } from "../../src/ops/reduction/sum.ts";
import { permute, transpose } from "../../src/ops/view/permute.ts";
import { reshape } from "../../src/ops/view/reshape.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { checkGradients, leaf } from "./gradients.ts";
import { families, matrix } from "./matrices.ts";
import { on, places, toTensor } from "./run.ts";

const random = families["random"];

describe.each(["reference", "cpu"] as const)("gradients of both orders on %s", (backend) => {
  const check = (compute: (...x: Tensor[]) => Tensor, ...inputs: readonly (readonly [number, number])[]): void =>
    on(backend, true, () =>
      checkGradients(
        compute,
        inputs.map(([rows, columns], at) => leaf(random(rows, columns, at + 4))),
      ),
    );

  test.each([
    [3, 3],
    [2, 4],
    [4, 2],
    [1, 3],
    [3, 1],
  ] as const)("gradients of lu of %p x %p equal finite differences", (rows, columns) => {
    check((a) => lu(a).l, [rows, columns]);
    check((a) => lu(a).u, [rows, columns]);
    check((a) => luFactor(a).lu, [rows, columns]);
    check(
      (a) => {
        const { p, l, u } = lu(stack([a, mul(a, 2)]));
        return matmul(mul(matmul(p, l), 2), mul(u, u));
      },
      [rows, columns],
    );
  });

  test("gradients of lu without pivots equal finite differences", () =>
    check((a) => matmul(lu(a, { pivot: false }).l, lu(a, { pivot: false }).u), [3, 3]));

  for (const left of [true, false])
    test.each([false, true])(`gradients of luSolve equal finite differences, left ${left}, adjoint %p`, (adjoint) => {
      check(
        (a, b) => {
          const { lu: factors, pivots } = luFactor(a);
          return luSolve(factors, pivots, b, { left, adjoint });
        },
        [3, 3],
        left ? [3, 2] : [2, 3],
      );
    });

  test("rows that are permuted in a cycle have gradients", () => {
    const noise = random(4, 4, 2).values;
    const a = leaf(matrix(4, 4, (i, j) => noise[i * 4 + j] / 4 + (j === (i + 1) % 4 ? 3 : 0)));
    on(backend, true, () => {
      checkGradients((x) => luFactor(x).lu, [a]);
      for (const adjoint of [false, true])
        checkGradients(
          (x, b) => {
            const { lu: factors, pivots } = luFactor(x);
            return luSolve(factors, pivots, b, { adjoint });
          },
          [a, leaf(random(4, 1, 3))],
        );
    });
  });

  test("gradients of solve equal finite differences", () => {
    check((a, b) => solve(a, b), [3, 3], [3, 2]);
    check((a, b) => solve(a, b, { left: false }), [3, 3], [2, 3]);
    check((a, b) => solve(a, reshape(b, [3])), [3, 3], [3, 1]);
    check((a, b) => solve(stack([a, mul(a, 2)]), b), [2, 2], [2, 3]);
    check((a, b) => solve(stack([a, add(a, transpose(a, 0, 1))]), reshape(b, [2, 2])), [2, 2], [4, 1]);
  });

  test("gradients of inv equal finite differences", () => check((a) => inv(stack([a, mul(a, a)])), [3, 3]));

  test("gradients of determinants equal finite differences", () => {
    check((a) => det(stack([a, matmul(a, a)])), [3, 3]);
    check((a) => slogdet(stack([a, matmul(a, a)])).logabsdet, [3, 3]);
    check((a) => logdet(matmul(a, transpose(a, 0, 1))), [3, 3]);
  });

  test("gradients of tensorSolve and tensorInv equal finite differences", () => {
    check((a, b) => tensorSolve(reshape(a, [2, 2, 2, 2]), reshape(b, [2, 2])), [4, 4], [4, 1]);
    check((a, b) => tensorSolve(reshape(a, [2, 2, 2, 2]), reshape(b, [2, 2]), { dims: [0, 2] }), [4, 4], [4, 1]);
    check((a) => tensorInv(reshape(a, [4, 2, 2]), { ind: 1 }), [4, 4]);
  });

  test("the gradient of det of singular matrices equals their cofactors", () => {
    on(backend, true, () => {
      const cases = [
        {
          a: [
            [1, 2],
            [2, 4],
          ],
          cofactors: [
            [4, -2],
            [-2, 1],
          ],
        },
        {
          a: [
            [0, 1],
            [0, 0],
          ],
          cofactors: [
            [0, 0],
            [-1, 0],
          ],
        },
        {
          a: [
            [1, 2, 3],
            [4, 5, 6],
            [5, 7, 9],
          ],
          cofactors: [
            [3, -6, 3],
            [3, -6, 3],
            [-3, 6, -3],
          ],
        },
        {
          a: [
            [0, 0],
            [0, 0],
          ],
          cofactors: [
            [0, 0],
            [0, 0],
          ],
        },
        {
          a: [
            [1, 1, 1],
            [2, 2, 2],
            [3, 3, 3],
          ],
          cofactors: [
            [0, 0, 0],
            [0, 0, 0],
            [0, 0, 0],
          ],
        },
        { a: [[0]], cofactors: [[1]] },
      ];
      for (const { a, cofactors } of cases)
        for (const createGraph of [false, true]) {
          const x = tensor(a, { dtype: "float64" });
          x.requiresGrad = true;
          const [own] = grad([det(x)], [x], { createGraph });
          const expected = cofactors.flat();
          for (const [at, value] of [...own.dataSync()].entries())
            expect(value).toBeCloseTo(expected[at], createGraph ? 6 : 13);
        }
      const large = zeros([70, 70], { dtype: "float32" });
      large.requiresGrad = true;
      expect([...grad([det(large)], [large])[0].dataSync()].every((value) => value === 0)).toBe(true);
    });
  });

  test("the gradient of det of a singular matrix has a gradient", () => {
    on(backend, true, () => {
      const x = tensor(
        [
          [1, 2],
          [2, 4],
        ],
        { dtype: "float64" },
      );
      x.requiresGrad = true;
      const [first] = grad([det(x)], [x], { createGraph: true });
      const [second] = grad(
        [
          sum(
            mul(
              first,
              tensor(
                [
                  [1, 2],
                  [3, 5],
                ],
                { dtype: "float64" },
              ),
            ),
          ),
        ],
        [x],
      );
      const expected = [5, -3, -2, 1]; // the cofactors of the cotangent
      for (const [at, value] of [...second.dataSync()].entries()) expect(value).toBeCloseTo(expected[at], 5);
    });
  });

  test("the gradient of slogdet of a singular matrix is not finite", () => {
    on(backend, true, () => {
      const x = tensor(
        [
          [1, 2],
          [2, 4],
        ],
        { dtype: "float64" },
      );
      x.requiresGrad = true;
      const [own] = grad([slogdet(x).logabsdet], [x]);
      expect([...own.dataSync()].some(Number.isFinite)).toBe(false);
    });
  });
});

describe.each(places)("determinants are accurate on $backend in $dtype", ({ backend, dtype }) => {
  const few = dtype === "float64" ? 14 : 6;
  const close = (actual: number, expected: number, digits: number): void =>
    expect(Math.abs(actual / expected - 1)).toBeLessThan(digits * (dtype === "float64" ? 2 ** -52 : 2 ** -23));
  const numbers = (x: Tensor): number[] => [...(x.dataSync() as Float32Array)];

  test("the determinant of the second-difference matrix is n + 1", () => {
    on(backend, true, () => {
      for (const size of [1, 2, 5, 8, 33, 64]) {
        const a = matrix(size, size, (i, j) => (i === j ? 2 : Math.abs(i - j) === 1 ? -1 : 0));
        const batch = stack([toTensor(a, dtype), mul(toTensor(a, dtype), -1)]);
        const sign = size % 2 === 0 ? 1 : -1;
        for (const [at, own] of numbers(det(batch)).entries()) close(own, (at === 0 ? 1 : sign) * (size + 1), 8 * size);
        const { sign: signs, logabsdet } = slogdet(batch);
        expect(numbers(signs)).toEqual([1, sign]);
        for (const own of numbers(logabsdet)) close(own, Math.log(size + 1), 8 * size);
        const logs = numbers(logdet(batch));
        close(logs[0], Math.log(size + 1), 8 * size);
        expect(Number.isNaN(logs[1])).toBe(sign < 0);
      }
    });
  });

  test("the determinant of Hilbert's matrix is accurate", () => {
    const factorials = (count: number): number => {
      let all = 1;
      for (let i = 1, factorial = 1; i < count; i++, all *= factorial) factorial *= i;
      return all;
    };
    on(backend, true, () => {
      for (let size = 1; size <= few / 2; size++) {
        const exact = factorials(size) ** 4 / factorials(2 * size);
        const own = det(toTensor(families["hilbert"](size, size, 0), dtype)).item() as number;
        close(own, exact, 4 * 33 ** (size - 1)); // the condition number grows by a factor of about 33 with each row
      }
    });
  });

  test("determinants of singular, empty and large matrices are correct", () => {
    on(backend, true, () => {
      const singular = tensor(
        [
          [1, 2],
          [2, 4],
        ],
        { dtype },
      );
      expect([numbers(det(singular))[0] + 0, numbers(slogdet(singular).sign)[0] + 0]).toEqual([0, 0]); // not −0
      expect([slogdet(singular).logabsdet.item(), logdet(singular).item()]).toEqual([-Infinity, -Infinity]);
      const empty = zeros([2, 0, 0], { dtype });
      expect([numbers(det(empty)), numbers(logdet(empty))]).toEqual([
        [1, 1],
        [0, 0],
      ]);
      const swaps = tensor(
        [
          [0, 1, 0],
          [0, 0, 1],
          [1, 0, 0],
        ],
        { dtype },
      );
      expect([det(swaps).item(), det(permute(swaps, [1, 0])).item()]).toEqual([1, 1]);
      const swap = tensor(
        [
          [0, 2],
          [3, 0],
        ],
        { dtype },
      );
      expect([det(swap).item(), slogdet(swap).sign.item()]).toEqual([-6, -1]);
      const large = toTensor(
        matrix(60, 60, (i, j) => (i === j ? 1e30 : 0)),
        dtype,
      );
      close(slogdet(large).logabsdet.item() as number, 1800 * Math.LN10, 64);
      expect(
        Number.isNaN(
          det(
            tensor(
              [
                [Number.NaN, 1],
                [1, 1],
              ],
              { dtype },
            ),
          ).item(),
        ),
      ).toBe(true);
    });
  });

  test("tensorSolve and tensorInv are accurate", () => {
    on(backend, true, () => {
      const a = toTensor(
        matrix(4, 4, (i, j) => (i === (j + 1) % 4 ? 2 : 0)),
        dtype,
      );
      const b = tensor(
        [
          [2, 4],
          [6, 8],
        ],
        { dtype },
      );
      expect(tensorSolve(reshape(a, [2, 2, 4]), b).toArray()).toEqual([2, 3, 4, 1]);
      expect(tensorInv(reshape(a, [2, 2, 4])).shape).toEqual([4, 2, 2]);
      expect(numbers(tensorInv(reshape(a, [2, 2, 4])))).toEqual(numbers(inv(a)));
    });
  });
});
