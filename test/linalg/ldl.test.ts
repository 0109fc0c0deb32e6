/** Factors of symmetric indefinite matrices, by the residuals of LAPACK's test suite (dsyt01, dpot02). */
import { describe, expect, test } from "bun:test";
import { LinAlgError } from "../../src/core/errors.ts";
import { ldlFactor, ldlFactorEx, ldlSolve } from "../../src/linalg/ldl/ldl.ts";
import { toDType } from "../../src/ops/copy/cast.ts";
import { zeros } from "../../src/ops/creation/full.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { stack } from "../../src/ops/join/cat.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { errorOf } from "../support/errors.ts";
import { checkGradients, leaf } from "./gradients.ts";
import {
  difference,
  families,
  identity,
  type Matrix,
  matrix,
  norm1,
  product,
  rounded,
  symmetricFamilies,
  transposed,
} from "./matrices.ts";
import { mulberry32 } from "./random.ts";
import { batchOf, largeSizes, on, places, ratio, sizes, THRESHOLD, toTensor } from "./run.ts";

const numbers = (x: Tensor): number[] => [...(x.dataSync() as ArrayLike<number> as Float64Array)];

/** Multiplies the factors: for each block, from the last one on, L D Lᵀ with its rows and columns permuted back. */
function multiplied(ld: readonly number[], pivots: readonly number[], size: number): Matrix {
  const blocks: { k: number; width: number }[] = [];
  for (let k = 0; k < size; k += blocks.at(-1)!.width) blocks.push({ k, width: pivots[k] < 0 ? 2 : 1 });
  const isInside = (i: number, j: number): boolean => blocks.some(({ k, width }) => i < k + width && j >= k && i >= j);
  const element = (i: number, j: number): number => ld[Math.max(i, j) * size + Math.min(i, j)];
  let all = matrix(size, size, (i, j) => (isInside(Math.max(i, j), Math.min(i, j)) ? element(i, j) : 0));
  for (const { k, width } of blocks.toReversed()) {
    const last = k + width - 1;
    const other = Math.abs(pivots[k]) - 1;
    const place = (i: number): number => (i === last ? other : i === other ? last : i);
    const l = matrix(size, size, (i, j) => (i === j ? 1 : j >= k && j <= last && i > last ? ld[i * size + j] : 0));
    const change = product(
      matrix(size, size, (i, j) => Number(place(i) === j)),
      l,
    );
    all = product(product(change, all), transposed(change));
  }
  return all;
}

for (const { backend, dtype } of places.filter((own) => own.backend !== "metal"))
  describe(`ldlFactor and ldlSolve, ${backend} ${dtype}`, () => {
    const few = backend === "reference" ? sizes.filter((size) => size < 34) : [...sizes, ...largeSizes.slice(0, 2)];

    for (const [family, make] of Object.entries(symmetricFamilies))
      test(`ldlFactor and ldlSolve of ${family} are accurate`, () => {
        for (const size of few) {
          const own = make(size, size + 1);
          const a = dtype === "float32" ? rounded(own) : own;
          const b = rounded(families["random"](size, 3, 5));
          const above = matrix(size, size, (i, j) => (j > i ? Number.NaN : a.values[i * size + j]));
          const { ld, pivots, info, x } = on(backend, true, () => {
            const factors = ldlFactorEx(toTensor(above, dtype));
            const solution = ldlSolve(factors.ld, factors.pivots, toTensor(b, dtype));
            return {
              ld: numbers(factors.ld),
              pivots: numbers(factors.pivots),
              info: factors.info.item(),
              x: { rows: size, columns: 3, values: Float64Array.from(numbers(solution)) },
            };
          });
          if (size > 33)
            expect(info).toBeNumber(); // the checks take size⁴
          else if (ld.every(Number.isFinite)) {
            const residual = norm1(difference(multiplied(ld, pivots, size), a));
            expect(ratio(residual, size * norm1(a), dtype, `ldl, ${family}`)).toBeLessThan(THRESHOLD);
          } else expect(family).toMatch(/overflow/);
          if (info !== 0 || !x.values.every(Number.isFinite)) continue;
          const rest = norm1(difference(product(a, x), b));
          expect(ratio(rest, size * norm1(a) * norm1(x), dtype, `ldlSolve, ${family}`)).toBeLessThan(THRESHOLD);
        }
      });

    test("blocks of two, batches, singular matrices and 16-bit dtypes are correct", () => {
      on(backend, true, () => {
        const swap = tensor(
          [
            [0, 1],
            [1, 0],
          ],
          { dtype },
        );
        const low = tensor(
          [
            [1, 2],
            [2, 4],
          ],
          { dtype },
        );
        const { ld, pivots, info } = ldlFactorEx(stack([swap, low]));
        expect([info.toArray(), pivots.toArray()]).toEqual([
          [0, 2],
          [
            [-2, -2],
            [2, 2],
          ],
        ]);
        expect(numbers(ldlSolve(ld, pivots, tensor([[3], [5]], { dtype }))).slice(0, 2)).toEqual([5, 3]);
        const error = errorOf(() => ldlFactor(zeros([3, 2, 2], { dtype })).ld.dataSync()) as LinAlgError;
        expect(error).toBeInstanceOf(LinAlgError);
        expect(error.message).toBe("[ldlFactor] the matrix at [0] of the batch is singular: element 1 of D is 0");
        expect(ldlFactor(zeros([0, 3, 3], { dtype })).ld.shape).toEqual([0, 3, 3]);
        const short = ldlFactor(toDType(swap, "float16"));
        expect([short.ld.dtype, numbers(toDType(short.ld, "float32"))]).toEqual(["float16", [0, 0, 1, 0]]);
      });
    });

    test("pivots outside of the matrix swap no rows", () => {
      on(backend, true, () => {
        const ld = toTensor(identity(3), dtype);
        const b = tensor([[1], [2], [4]], { dtype });
        for (const own of [0, 4, 2 ** 31 - 1])
          expect(numbers(ldlSolve(ld, tensor([own, 2, 3], { dtype: "int32" }), b))).toEqual([1, 2, 4]);
        expect(() => ldlSolve(ld, tensor([-9, 2, -(2 ** 31)], { dtype: "int32" }), b).dataSync()).not.toThrow();
      });
    });

    // Bunch and Kaufman's rule by its definition. Small integers give many equal candidates, and exact comparisons.
    test("the first block follows the pivot rule, and ties choose the first element", () => {
      const random = mulberry32(11);
      const alpha = (1 + Math.sqrt(17)) / 8;
      for (const size of [2, 3, 4, 7, 9]) {
        const matrices = Array.from({ length: 40 }, () => {
          const drawn = Array.from({ length: size * size }, () => Math.floor(random() * 7) - 3);
          return matrix(size, size, (i, j) => drawn[Math.max(i, j) * size + Math.min(i, j)]);
        });
        const expected = matrices.map(({ values }) => {
          const at = (i: number, j: number) => Math.abs(values[i * size + j]);
          const column = Array.from({ length: size - 1 }, (_, i) => at(i + 1, 0));
          const largest = Math.max(...column);
          if (at(0, 0) >= alpha * largest) return 1;
          const row = 1 + column.indexOf(largest);
          const ofRow = Math.max(...Array.from({ length: size }, (_, j) => (j === row ? 0 : at(row, j))));
          if (at(0, 0) * ofRow >= alpha * largest ** 2) return 1;
          return at(row, row) >= alpha * ofRow ? row + 1 : -(row + 1);
        });
        const { pivots } = on(backend, true, () => ldlFactorEx(batchOf(matrices, dtype)));
        expect((pivots.toArray() as number[][]).map(([first]) => first)).toEqual(expected);
        expect(new Set(expected).size).toBeGreaterThan(2);
      }
    });

    if (backend === "cpu")
      test("a matrix of 500 rows is accurate", () => {
        const own = symmetricFamilies["random"](500, 3);
        const [a, b] = [rounded(own), rounded(families["random"](500, 1, 5))];
        const x = on(backend, true, () => {
          const { ld, pivots } = ldlFactor(toTensor(a, dtype));
          return numbers(ldlSolve(ld, pivots, toTensor(b, dtype)));
        });
        const solution = { rows: 500, columns: 1, values: Float64Array.from(x) };
        const rest = norm1(difference(product(a, solution), b));
        expect(ratio(rest, 500 * norm1(a) * norm1(solution), dtype, "ldlSolve, random 500")).toBeLessThan(THRESHOLD);
      });
  });

test.each(["reference", "cpu"] as const)("ldlSolve has gradients by its right-hand side on %s", (backend) => {
  on(backend, true, () => {
    const { ld, pivots } = ldlFactor(toTensor(symmetricFamilies["random"](4, 2), "float64"));
    checkGradients((b) => ldlSolve(ld, pivots, b), [leaf(families["random"](4, 2, 1))]);
  });
});
