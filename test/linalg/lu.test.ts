/** LU factors, solutions and inverses, by the residuals of LAPACK's test suite (dget01, dget02, dget03). */
import { describe, expect, test } from "bun:test";
import { LinAlgError } from "../../src/core/errors.ts";
import { lu, luFactor, luFactorEx } from "../../src/linalg/lu/factor.ts";
import { inv, invEx } from "../../src/linalg/lu/inverse.ts";
import { luSolve, solve, solveEx } from "../../src/linalg/lu/solve.ts";
import { toDType } from "../../src/ops/copy/cast.ts";
import { zeros } from "../../src/ops/creation/full.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { stack } from "../../src/ops/join/cat.ts";
import { transpose } from "../../src/ops/view/permute.ts";
import { reshape } from "../../src/ops/view/reshape.ts";
import { narrow } from "../../src/ops/view/slice.ts";
import { errorOf } from "../support/errors.ts";
import { difference, families, identity, type Matrix, matrix, norm1, product } from "./matrices.ts";
import {
  batchOf,
  inDType,
  largeSizes,
  matricesIn,
  on,
  places,
  type RealDType,
  ratio,
  sizes,
  THRESHOLD,
  toTensor,
} from "./run.ts";

const names = Object.keys(families);

/** One matrix of each family, as a batch. */
const all = (rows: number, columns: number, dtype: RealDType): Matrix[] =>
  names.map((name, at) => inDType(families[name](rows, columns, at + 3), dtype));
/** The largest ratio over the columns of a solution. */
function checkSolution(a: Matrix, x: Matrix, b: Matrix, dtype: RealDType, name: string): void {
  const column = (own: Matrix, j: number): Matrix => matrix(own.rows, 1, (i) => own.values[i * own.columns + j]);
  for (let j = 0; j < b.columns; j++) {
    const residual = norm1(difference(product(a, column(x, j)), column(b, j)));
    expect(ratio(residual, a.rows * norm1(a) * norm1(column(x, j)), dtype, name)).toBeLessThan(THRESHOLD);
  }
}

function checkFactors(a: Matrix, p: Matrix, l: Matrix, u: Matrix, dtype: RealDType, name: string): void {
  expect(l.values.every((value, at) => isUnitLower(value, Math.floor(at / l.columns), at % l.columns))).toBe(true);
  expect(u.values.every((value, at) => at % u.columns >= Math.floor(at / u.columns) || value === 0)).toBe(true);
  const residual = norm1(difference(product(product(p, l), u), a));
  expect(ratio(residual, Math.max(a.rows, a.columns) * norm1(a), dtype, name)).toBeLessThan(THRESHOLD);
}

const isUnitLower = (value: number, i: number, j: number): boolean =>
  i === j ? value === 1 : i < j ? value === 0 : Math.abs(value) <= 1;

const shapes: readonly (readonly [number, number])[] = [
  ...([
    [0, 3],
    [3, 0],
    [1, 9],
    [9, 1],
    [3, 7],
    [7, 3],
    [17, 33],
    [33, 17],
    [5, 64],
    [64, 5],
    [31, 32],
  ] as const),
];
const largeShapes = [
  [129, 40],
  [40, 129],
  [100, 65],
  [9, 150],
  [150, 9],
] as const;

for (const { backend, dtype } of places) {
  const large = backend === "metal" ? [65, 97] : largeSizes;
  const few = backend === "reference" ? [...sizes.filter((size) => size < 18), 65] : [...sizes, ...large];

  describe(`the LU decomposition, ${backend} ${dtype}`, () => {
    test.each([...few.map((size) => [size, size] as const), ...shapes, ...largeShapes])(
      "lu of %p x %p is accurate",
      (rows, columns) => {
        const matrices = all(rows, columns, dtype);
        const { p, l, u } = on(backend, true, () => {
          const factors = lu(batchOf(matrices, dtype));
          return { p: matricesIn(factors.p), l: matricesIn(factors.l), u: matricesIn(factors.u) };
        });
        for (const [at, a] of matrices.entries()) checkFactors(a, p[at], l[at], u[at], dtype, `lu, ${names[at]}`);
      },
    );

    test.each(few)("solve and inv of %p are accurate", (size) => {
      const matrices = all(size, size, dtype);
      const b = inDType(families["random"](size, size % 3 === 0 ? 1 : 40, 5), dtype);
      const { x, inverse, info } = on(backend, true, () => {
        const a = batchOf(matrices, dtype);
        const { result, info: codes } = solveEx(a, toTensor(b, dtype));
        return { x: matricesIn(result), inverse: matricesIn(invEx(a).inverse), info: codes.toArray() as number[] };
      });
      for (const [at, a] of matrices.entries()) {
        if (info[at] !== 0 || ![...x[at].values, ...inverse[at].values].every(Number.isFinite)) continue;
        checkSolution(a, x[at], b, dtype, `solve, ${names[at]}`);
        const residual = norm1(difference(identity(size), product(a, inverse[at])));
        const scale = size * norm1(a) * norm1(inverse[at]);
        expect(ratio(residual, scale, dtype, `inv, ${names[at]}`)).toBeLessThan(THRESHOLD);
      }
      for (const name of ["random", "orthogonal", "near overflow", "near underflow"])
        if (size > 0) expect(info[names.indexOf(name)]).toBe(0);
    });

    test("single matrices give the same results as a batch", () => {
      for (const size of few) {
        const a = inDType(families["random"](size, size, 2), dtype);
        const b = inDType(families["random"](size, 3, 5), dtype);
        const x = on(backend, true, () =>
          matricesIn(reshape(solve(toTensor(a, dtype), toTensor(b, dtype)), [1, size, 3])),
        );
        checkSolution(a, x[0], b, dtype, "solve, random");
      }
    });

    test("luSolve is accurate, adjoint and from the right", () => {
      for (const size of few.filter((value) => value > 0)) {
        const a = inDType(families["random"](size, size, 2), dtype);
        const at = matrix(size, size, (i, j) => a.values[j * size + i]);
        const b = inDType(families["random"](size, 34, 5), dtype);
        for (const [left, adjoint] of [
          [true, false],
          [true, true],
          [false, false],
          [false, true],
        ] as const) {
          const x = on(backend, true, () => {
            const { lu: factors, pivots } = luFactor(toTensor(a, dtype));
            const right = toTensor(b, dtype);
            const result = luSolve(factors, pivots, left ? right : transpose(right, 0, 1), { left, adjoint });
            return matricesIn(stack([left ? result : transpose(result, 0, 1)]));
          });
          checkSolution(left === adjoint ? at : a, x[0], b, dtype, "luSolve, random");
        }
      }
    });

    test("batches of 1 to 500 are accurate", () => {
      for (const batch of [1, 2, 3, 5, 15, 16, 17, 33, 500]) {
        const matrices = Array.from({ length: batch }, (_, at) => inDType(families["random"](4, 4, at), dtype));
        const sides = Array.from({ length: batch }, (_, at) => inDType(families["random"](4, 2, at + 7), dtype));
        const x = on(backend, true, () => matricesIn(solve(batchOf(matrices, dtype), batchOf(sides, dtype))));
        for (const [at, a] of matrices.entries()) checkSolution(a, x[at], sides[at], dtype, "solve, random");
      }
    });

    test("views, vectors and broadcast batches are correct", () => {
      const [a, b] = [families["random"](3, 3, 1), families["random"](3, 3, 2)].map((x) => inDType(x, dtype));
      const right = inDType(families["random"](2, 3, 3), dtype);
      const vector = (at: number): Matrix => matrix(3, 1, (i) => right.values[at * 3 + i]);
      on(backend, true, () => {
        const both = batchOf([a, b], dtype);
        const vectors = matricesIn(reshape(solve(both, toTensor(right, dtype)), [2, 3, 1]));
        for (const [at, own] of [a, b].entries()) checkSolution(own, vectors[at], vector(at), dtype, "solve, random");
        const one = solve(narrow(both, 0, 1, 1), narrow(toTensor(right, dtype), 0, 1, 1)); // [1, 3] with [1, 3, 3]
        checkSolution(b, matricesIn(reshape(one, [1, 3, 1]))[0], vector(1), dtype, "solve, random");
        const turned = solve(transpose(both, -1, -2), reshape(narrow(toTensor(right, dtype), 0, 0, 1), [3, 1]));
        const at = matrix(3, 3, (i, j) => b.values[j * 3 + i]);
        checkSolution(at, matricesIn(turned)[1], vector(0), dtype, "solve, random");
        expect(solve(zeros([2, 1, 0, 0], { dtype }), zeros([3, 0, 4], { dtype })).shape).toEqual([2, 3, 0, 4]);
        expect(inv(zeros([0, 3, 3], { dtype })).shape).toEqual([0, 3, 3]);
        expect(inv(zeros([0, 70, 70], { dtype })).shape).toEqual([0, 70, 70]);
        expect(lu(zeros([70, 0], { dtype })).p.dataSync().length).toBe(4900);
        expect(luFactorEx(zeros([2, 0, 70], { dtype })).info.toArray()).toEqual([0, 0]);
        const none = solveEx(stack([toTensor(identity(70), dtype)]), zeros([70, 0], { dtype }));
        expect([none.result.shape, none.info.toArray()]).toEqual([[1, 70, 0], [0]]);
        expect(solve(zeros([0, 3, 3], { dtype }), zeros([3, 4], { dtype })).shape).toEqual([0, 3, 4]);
        expect(solve(both, zeros([3, 0], { dtype })).shape).toEqual([2, 3, 0]);
      });
    });

    test("pivots are the largest elements, the first of equals, and NaN only if it is the first", () => {
      const pivotOf = (...column: number[]): number =>
        on(backend, true, () => {
          const a = tensor(
            column.map((value) => [value]),
            { dtype },
          );
          return Number(luFactorEx(a).pivots.dataSync()[0]);
        });
      expect(pivotOf(1, -3, 3, 2)).toBe(2);
      expect(pivotOf(3, -3)).toBe(1);
      expect(pivotOf(1, Number.NaN, 2)).toBe(3);
      expect(pivotOf(Number.NaN, 5)).toBe(1);
      expect(pivotOf(1, -Infinity, Infinity)).toBe(2);
      expect(pivotOf(0, Number.NaN)).toBe(1);
      expect(pivotOf(...Array.from({ length: 60 }, (_, i) => (i === 40 || i === 59 ? -9 : i / 10)))).toBe(41);
      expect(pivotOf(...Array.from({ length: 300 }, (_, i) => (i === 200 || i === 290 ? -9 : i / 50)))).toBe(201);
      expect(pivotOf(...Array.from({ length: 300 }, (_, i) => (i === 7 ? Number.NaN : i === 290 ? 2 : 1)))).toBe(291);
      expect(pivotOf(Number.NaN, ...Array.from({ length: 299 }, () => 1))).toBe(1);
    });

    test("after rows have been swapped, ties still choose the first pivot", () => {
      // Each row has ±1 in one drawn column. The pivot of a column is its first remaining row with ±1 there. If there
      // is none, nothing is swapped.
      for (const size of [3, 16, 17, 33, 50, 64, 100]) {
        const draws = families["random"](size, 1, size).values;
        const columnOf = Array.from(draws, (draw) => Math.abs(Math.trunc(draw * 1e6)) % size);
        const order = columnOf.map((_, i) => i);
        const expected = order.map((_, k) => {
          const found = order.findIndex((row, position) => position >= k && columnOf[row] === k);
          const pivot = found < 0 ? k : found;
          [order[k], order[pivot]] = [order[pivot], order[k]];
          return pivot + 1;
        });
        const signed = matrix(size, size, (i, j) => (columnOf[i] !== j ? 0 : draws[i] < 0 ? -1 : 1));
        const { pivots, info } = on(backend, true, () => luFactorEx(batchOf([signed, signed, signed], dtype)));
        expect(pivots.toArray()).toEqual([expected, expected, expected]);
        const failed = expected.findIndex((_, k) => columnOf[order[k]] !== k) + 1;
        expect(info.toArray()).toEqual([failed, failed, failed]);
      }
    });

    if (backend === "cpu")
      test("a matrix has the same bits in a batch as alone, and infinity stays in its rows", () => {
        for (const size of [33, 40, 64]) {
          const matrices = [1, 2, 3, 4, 5].map((seed) => inDType(families["random"](size, size, seed), dtype));
          matrices[3].values[size - 1] = Infinity; // the last element of row 0
          const factorsOf = (own: readonly Matrix[]): Matrix[] =>
            on(backend, true, () => matricesIn(luFactorEx(batchOf(own, dtype)).lu));
          const together = factorsOf(matrices);
          for (const [at, own] of matrices.entries())
            expect([at, Array.from(together[at].values)]).toEqual([at, Array.from(factorsOf([own])[0].values)]);
          const { values } = together[3];
          const position = values.indexOf(Infinity);
          expect(position % size).toBe(size - 1);
          const columns = Array.from(values).filter((_, k) => k % size < size - 1 || k < position);
          expect(columns.every(Number.isFinite)).toBe(true);
        }
      });

    if (backend === "cpu")
      test("factors are exact, also if the reciprocal of the pivot is not finite or is subnormal", () => {
        for (const size of [3, 40, 100])
          for (const pivot of dtype === "float32" ? [2 ** -140, 1.5 * 2 ** 127] : [2 ** -1065, 1.5 * 2 ** 1023]) {
            const factor = (i: number): number => (i === 0 ? 1 : 2 ** -(1 + (i % 3)));
            const a = matrix(size, size, (i, j) => (j === 0 ? pivot * factor(i) : Number(i === j)));
            const factors = on(backend, true, () => luFactorEx(toTensor(a, dtype)).lu.toArray() as number[][]);
            expect(factors.map((row) => row[0])).toEqual(factors.map((_, i) => (i === 0 ? pivot : factor(i))));
          }
      });

    test("singular matrices are errors", () => {
      const values = [
        [
          [2, 1],
          [1, 3],
        ],
        [
          [1, 2],
          [2, 4],
        ],
        [
          [0, 0],
          [0, 0],
        ],
      ];
      on(backend, true, () => {
        const a = tensor(values, { dtype });
        const b = tensor([[3], [5]], { dtype });
        for (const [operation, call] of Object.entries({
          solve: () => solve(a, b).dataSync(),
          inv: () => inv(a).dataSync(),
        })) {
          const error = errorOf(call) as LinAlgError;
          expect(error).toBeInstanceOf(LinAlgError);
          expect(error.message).toBe(
            `[${operation}] the matrix at [1] of the batch is singular: pivot 2 of its LU factorization is 0`,
          );
          expect([error.batch, error.pivot]).toEqual([[1], 2]);
        }
        expect(errorOf(() => luFactor(a).pivots.dataSync()).message).toContain(
          "[1] of the batch has a pivot of 0 in column 2",
        );
        expect(luFactorEx(a).info.toArray()).toEqual([0, 2, 1]);
        expect(solveEx(a, b).info.toArray()).toEqual([0, 2, 1]);
        expect(invEx(a).info.toArray()).toEqual([0, 2, 1]);
        const x = matricesIn(solveEx(a, b).result).map(({ values: own }) => [...own]);
        for (const [at, value] of x[0].entries()) expect(value).toBeCloseTo([0.8, 1.4][at], 5);
        const inverses = matricesIn(invEx(a).inverse).map(({ values: own }) => own.some(Number.isFinite));
        expect([x.map((own) => own.some(Number.isFinite)), inverses]).toEqual([
          [true, false, false],
          [true, false, false],
        ]);
        const nan = tensor(
          [
            [Number.NaN, 1],
            [1, 1],
          ],
          { dtype },
        );
        expect(solve(nan, b).toArray()).toEqual([[Number.NaN], [Number.NaN]]);
      });
    });

    test("LU without pivots is accurate", () => {
      on(backend, true, () => {
        const { p, l, u } = lu(
          tensor(
            [
              [1, 2],
              [2, 2],
            ],
            { dtype },
          ),
          { pivot: false },
        );
        expect([p.shape, l.toArray(), u.toArray()]).toEqual([
          [0],
          [
            [1, 0],
            [2, 1],
          ],
          [
            [1, 2],
            [0, -2],
          ],
        ]);
        expect(
          luFactorEx(
            tensor(
              [
                [0, 1],
                [1, 0],
              ],
              { dtype },
            ),
            { pivot: false },
          ).info.item(),
        ).toBe(1);
      });
    });

    test("16-bit dtypes are computed in float32", () => {
      const size = 48;
      const a = matrix(size, size, (i, j) => Math.fround(1 / (1 + Math.abs(i - j)) + (i === j ? 1 : 0)));
      on(backend, true, () => {
        for (const short of ["float16", "bfloat16"] as const) {
          const exact = toDType(toTensor(a, "float32"), short);
          const { p, l, u } = lu(exact);
          expect([p.dtype, l.dtype, u.dtype]).toEqual([short, short, short]);
          const [own, ...factors] = [exact, p, l, u].map((x) => matricesIn(stack([toDType(x, "float32")]))[0]);
          const residual = norm1(difference(product(product(factors[0], factors[1]), factors[2]), own));
          // the result is rounded only once
          expect(residual / norm1(own)).toBeLessThan(short === "float16" ? 2 ** -11 : 2 ** -8);
          expect([...toDType(inv(exact), "float32").dataSync()].every(Number.isFinite)).toBe(true);
        }
      });
    });

    if (backend === "cpu")
      test("a matrix of 500 rows is accurate", () => {
        const a = inDType(families["random"](500, 500, 2), dtype);
        const b = inDType(families["random"](500, 2, 5), dtype);
        const x = on(backend, true, () => matricesIn(stack([solve(toTensor(a, dtype), toTensor(b, dtype))])));
        checkSolution(a, x[0], b, dtype, "solve, random 500");
        const { p, l, u } = on(backend, true, () => lu(stack([toTensor(a, dtype)])));
        checkFactors(a, matricesIn(p)[0], matricesIn(l)[0], matricesIn(u)[0], dtype, "lu, random 500");
      });
  });
}
