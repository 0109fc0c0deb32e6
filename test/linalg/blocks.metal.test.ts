/** Metal's kernels for matrices larger than a threadgroup's memory, and batches of small ones, under the checker. */
import { describe, expect, test } from "bun:test";
import { metalContext } from "../../src/backend/metal/context.ts";
import { whyUnavailable } from "../../src/backend/registry.ts";
import type { LinAlgError } from "../../src/core/errors.ts";
import { cholesky, choleskyEx } from "../../src/linalg/cholesky/cholesky.ts";
import { solveTriangular } from "../../src/linalg/triangular/triangular.ts";
import { stack } from "../../src/ops/join/cat.ts";
import { expand } from "../../src/ops/view/expand.ts";
import { transpose } from "../../src/ops/view/permute.ts";
import { errorOf } from "../support/errors.ts";
import { usually } from "../support/repeats.ts";
import {
  definiteFamilies,
  difference,
  families,
  type Matrix,
  matrix,
  norm1,
  product,
  rounded,
  transposed,
} from "./matrices.ts";
import { on, ratio, THRESHOLD, toMatrix, toTensor } from "./run.ts";
import { checked, testVariants } from "./variants.ts";

const onMetal = <Result>(body: () => Result): Result => on("metal", true, body);
/** Sizes around those of the kernels' blocks, 32 columns, and tiles, 64 rows. */
const sizes = usually([65, 95, 96, 97, 128, 129, 161], (size) => [65, 95, 96, 129].includes(size));

/** A triangle with NaN in the elements that are not read. */
const triangle = (size: number, upper: boolean): Matrix => {
  const { values } = families.random(size, size, size);
  return rounded(
    matrix(size, size, (i, j) => {
      if (i === j) return 1 + Math.abs(values[i * size + j]);
      return (upper ? j > i : j < i) ? values[i * size + j] / size : Number.NaN;
    }),
  );
};
const read = (a: Matrix): Matrix => ({ ...a, values: a.values.map((value) => (Number.isNaN(value) ? 0 : value)) });

/** Fills all except the lower triangle with NaN. */
const lowerOnly = (a: Matrix): Matrix =>
  matrix(a.rows, a.columns, (i, j) => (j > i ? Number.NaN : a.values[i * a.columns + j]));

describe.if(whyUnavailable("metal") === undefined)("blocks of large matrices", () => {
  for (const [family, make] of Object.entries(definiteFamilies))
    test(`cholesky, ${family}`, () => {
      for (const size of family === "random" ? sizes : [97, 129]) {
        const a = rounded(make(size, size + 1));
        const own = toTensor(lowerOnly(a), "float32");
        const results = checked(() =>
          onMetal(() => [
            toMatrix(cholesky(own)),
            transposed(toMatrix(cholesky(transpose(own, 0, 1), { upper: true }))),
          ]),
        );
        for (const l of results) {
          expect(l.values.findIndex((value, at) => at % size > Math.floor(at / size) && value !== 0)).toBe(-1);
          const residual = norm1(difference(a, product(l, transposed(l))));
          expect(ratio(residual, size * norm1(a), "float32", `cholesky, ${family}`)).toBeLessThan(THRESHOLD);
        }
      }
    });

  test("solveTriangular", () => {
    for (const size of sizes)
      for (const upper of [false, true])
        for (const isTurned of [false, true]) {
          const a = triangle(size, upper);
          const b = rounded(families.random(size, isTurned ? 70 : 3, size));
          const turn = (x: Matrix) => transpose(toTensor(transposed(x), "float32"), 0, 1);
          const x = checked(() =>
            onMetal(() =>
              toMatrix(
                isTurned
                  ? solveTriangular(turn(a), turn(b), { upper })
                  : solveTriangular(toTensor(a, "float32"), toTensor(b, "float32"), { upper }),
              ),
            ),
          );
          const factor = read(a);
          const residual = norm1(difference(product(factor, x), b));
          expect(ratio(residual, norm1(factor) * norm1(x), "float32", "solveTriangular")).toBeLessThan(THRESHOLD);
        }
  });

  test("in a batch, every second matrix may have no factor", () => {
    const size = 100;
    const good = rounded(definiteFamilies.random(size, 3));
    for (const minor of [1, 32, 33, 64, 97, 100])
      for (const value of [0, Number.NaN]) {
        const at = (minor - 1) * (size + 1);
        const bad = { ...good, values: good.values.map((own, index) => (index === at ? value : own)) };
        const { factor, info } = checked(() =>
          onMetal(() => choleskyEx(stack([good, bad, good].map((x) => toTensor(x, "float32"))))),
        );
        expect([...info.dataSync()]).toEqual([0, minor, 0]);
        const values = Float64Array.from(factor.dataSync() as ArrayLike<number>);
        const [first, second, third] = [0, 1, 2].map((index) =>
          values.slice(index * size ** 2, (index + 1) * size ** 2),
        );
        expect(third).toEqual(first);
        const rows = (minor - 1) * size;
        expect(second.slice(0, rows)).toEqual(first.slice(0, rows));
        expect(second.slice(rows).every((own) => own === 0)).toBe(true);
      }
  });

  test("batches of small matrices share a threadgroup", () => {
    // A usual run has three numbers of matrices: one, some that do not fill a threadgroup, and too many for one
    // threadgroup.
    for (const size of [1, 2, 15, 16, 17, 31, 32, 33])
      for (const batch of usually([1, 2, 3, 7, 9, 33], (own) => [1, 7, 33].includes(own))) {
        const good = [1, 2, 3].map((seed) => rounded(definiteFamilies.random(size, seed)));
        const bad = {
          ...good[0],
          values: good[0].values.map((own, index) => (index === size * size - 1 ? -1 : own)),
        };
        const all = Array.from({ length: batch }, (_, at) => (at === 5 ? bad : good[at % 3]));
        const { factor, info } = checked(() =>
          onMetal(() => choleskyEx(stack(all.map((x) => toTensor(x, "float32"))))),
        );
        expect([...info.dataSync()]).toEqual(all.map((own) => (own === bad ? size : 0)));
        const values = Float64Array.from(factor.dataSync() as ArrayLike<number>);
        for (const [at, a] of all.entries()) {
          if (a === bad) continue;
          const l = { rows: size, columns: size, values: values.slice(at * size ** 2, (at + 1) * size ** 2) };
          const residual = norm1(difference(a, product(l, transposed(l))));
          expect(ratio(residual, size * norm1(a), "float32", "cholesky, small")).toBeLessThan(THRESHOLD);
        }
      }
  });

  test("the error of a large matrix names it", () => {
    const bad = matrix(70, 70, (i, j) => (i === j ? 66 - i : 0));
    const error = errorOf(() => onMetal(() => cholesky(toTensor(bad, "float32")).dataSync())) as LinAlgError;
    expect([error.batch, error.pivot]).toEqual([[], 67]);
  });

  test("the number of dispatches does not depend on the batch", () => {
    const dispatches = (batch: number, size: number): [number, number] => {
      const a = toTensor(rounded(definiteFamilies.random(size, 1)), "float32");
      const context = metalContext();
      return onMetal(() => {
        const all = stack(Array.from({ length: batch }, () => a));
        const first = context.statistics().dispatches;
        const { factor } = choleskyEx(all);
        const second = context.statistics().dispatches;
        solveTriangular(factor, expand(a, [batch, size, size]), { upper: false });
        return [second - first, context.statistics().dispatches - second];
      });
    };
    // Cholesky: two dispatches for each 32 columns, and one that clears. Solving: one, and a copy of an expanded
    // operand.
    expect([dispatches(1, 100), dispatches(5, 100)]).toEqual([
      [9, 1],
      [9, 2],
    ]);
    expect(dispatches(7, 20)[0]).toBe(1);
  });

  testVariants(import.meta.path, "blocks of large matrices (cholesky, random|solveTri|batches of small)");
});
