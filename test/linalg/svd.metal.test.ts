/**
 * The memory traffic and numbers of dispatches of the kernels of singular value decompositions, also for larger
 * matrices.
 */
import { describe, expect, test } from "bun:test";
import { metalContext } from "../../src/backend/metal/context.ts";
import { LinAlgError } from "../../src/core/errors.ts";
import { svd, svdvals } from "../../src/linalg/svd/svd.ts";
import { stack } from "../../src/ops/join/cat.ts";
import { select } from "../../src/ops/view/slice.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { errorOf } from "../support/errors.ts";
import { repeats, usually } from "../support/repeats.ts";
import { families, matrix, rounded } from "./matrices.ts";
import { on, places, toTensor } from "./run.ts";
import { checkSvd } from "./svd.ts";
import { watched } from "./traffic.ts";
import { checked, testVariants } from "./variants.ts";

type Family = (typeof families)[string];

const batchOf = (family: Family, count: number, rows: number, columns: number): Tensor =>
  on("metal", true, () =>
    stack(Array.from({ length: count }, (_, at) => toTensor(family(rows, columns, at + 1), "float32"))),
  );

/** The first sweep rotates every pair, and the third one is the last: of random matrices, there are up to ten. */
const nearlyDiagonal: Family = (rows, columns, seed) => {
  const { values } = families.random(rows, columns, seed);
  return matrix(rows, columns, (i, j) => (i === j ? 100 - i : 0) + 0.01 * values[i * columns + j]);
};

describe.skipIf(!places.some(({ backend }) => backend === "metal") || !metalContext().isSoftware)(
  "svd on metal moves each element once",
  () => {
    test.each([
      [8, 8],
      [32, 32],
      [63, 63],
      [64, 20],
      [20, 64],
    ])("%d x %d: one dispatch reads each matrix once, and writes each result once", (rows, columns) => {
      const small = Math.min(rows, columns);
      for (const count of small < 60 ? [1, 3] : [1]) {
        const a = batchOf(small > 8 ? nearlyDiagonal : families.random, count, rows, columns);
        const values = rows * columns + small + 1;
        expect(watched(() => svdvals(a)).each).toEqual([4 * count * values]);
        expect(watched(() => svd(a, false)).each).toEqual([4 * count * (values + small * (rows + columns))]);
      }
    });

    test("svd of 64 x 64, whose vectors leave no space for norms, is accurate", () => {
      const a = batchOf(families.random, 1, 64, 64);
      const [bytes, ...others] = watched(() => svd(a, false)).each;
      expect(others).toEqual([]);
      expect(bytes / (4 * (3 * 64 * 64 + 64 + 1))).toBeLessThan(1.3);
    });
  },
);

const hasMetal = places.some(({ backend }) => backend === "metal");
const check = (family: string, rows: number, columns: number, full: boolean): unknown =>
  on("metal", true, () => checkSvd(rounded(families[family](rows, columns, 3)), "float32", full, `svd, ${family}`));

// Rows of nearly equal length are swapped in most sweeps. After a swap, a sweep misses some pairs.
test.skipIf(!hasMetal)("repeated singular values are accurate", () => {
  for (const size of [9, 12, 16, 33])
    for (let seed = 1; seed <= repeats({ usual: 4, all: 12 }); seed++) {
      const a = rounded(families["repeated values"](size, size, seed * 15838));
      on("metal", true, () => checkSvd(a, "float32", false, "svd, repeated values"));
    }
});

const oblong = [[450, 18] as const, [18, 450] as const];

const NAME = "larger matrices, on a variant of the device";
if (hasMetal) testVariants(import.meta.path, NAME);

describe.skipIf(!hasMetal)("svd of matrices that are larger than a threadgroup's memory", () => {
  test(NAME, () => {
    check("wilkinson", 66, 66, false);
    check("near overflow", 700, 12, false);
    check("near underflow", 12, 700, false);
  });

  test("svd has no findings under the checker", () => {
    checked(() => check("random", 65, 66, true));
    checked(() => check("rank-deficient", 300, 26, true));
    checked(() => check("rank-deficient", 26, 300, true));
  });

  test("rectangular matrices of every family are accurate", () => {
    // A short run alternates between tall and wide matrices.
    for (const [at, family] of Object.keys(families).entries())
      for (const [rows, columns] of usually(oblong, (_, turn) => turn === at % 2)) check(family, rows, columns, false);
    check("random", 130, 50, true);
    check("random", 50, 130, true);
  });

  // their rotations need many sweeps if columns are not sorted in descending order first
  test.each([
    ["graded rows", 66, 70],
    ["graded columns", 66, 70],
    ["geometric values", 66, 66],
    ["rank-deficient", 70, 66],
    ["zero", 70, 66],
  ])("svd in blocks is accurate: %s, %d x %d", (family, rows, columns) => {
    check(family, rows, columns, rows > columns);
  });

  test("known singular values are found", () => {
    // −1, 2, −1 on the diagonals: 4 sin²(k π / (2 (n + 1)))
    const size = 65;
    const second = matrix(size, size, (i, j) => (i === j ? 2 : Number(Math.abs(i - j) === 1) * -1));
    const values = on("metal", true, () => [...svdvals(toTensor(second, "float32")).dataSync()].map(Number));
    for (const [k, value] of values.entries())
      expect(Math.abs(value - 4 * Math.sin(((size - k) * Math.PI) / (2 * (size + 1))) ** 2)).toBeLessThan(4e-6);
  });

  test.each([
    [66, 67],
    [700, 12],
    [12, 700],
  ])("%d x %d in a batch has the same bits as alone", (rows, columns) => {
    const list = ["companion", "diagonal", "rank-deficient"].map((family) => families[family](rows, columns, 3));
    on("metal", true, () => {
      const alone = list.slice(0, rows < columns ? 3 : 2).map((own) => toTensor(own, "float32"));
      const together = svd(stack(alone), false);
      for (const [at, own] of alone.entries()) {
        const one = svd(own, false);
        for (const name of ["u", "s", "vh"] as const)
          expect([...select(together[name], 0, at).dataSync()]).toEqual([...one[name].dataSync()]);
      }
    });
  });

  test("one matrix takes as many dispatches as many matrices", () => {
    const dispatchesOf = (count: number, rows: number, columns: number): number => {
      const one = on("metal", true, () => toTensor(families.diagonal(rows, columns, 1), "float32"));
      const a = on("metal", true, () => stack(Array.from({ length: count }, () => one)));
      const context = metalContext();
      context.wait();
      context.configure("count", true);
      context.report({ clear: true });
      on("metal", true, () => svd(a, false));
      context.wait();
      const { dispatches } = context.report({ clear: true });
      context.configure("count", false);
      return dispatches.reduce((sum, { count: own }) => sum + own, 0);
    };
    expect(dispatchesOf(1, 65, 65)).toBe(dispatchesOf(3, 65, 65));
    expect(dispatchesOf(1, 450, 18)).toBe(dispatchesOf(3, 450, 18));
  });

  test.each([
    [66, 66],
    [700, 12],
    [12, 700],
  ])("the error for %d x %d with an element that is not finite names the matrix", (rows, columns) => {
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY]) {
      const good = families.diagonal(rows, columns, 1);
      const values = good.values.with(rows * columns - 3, bad);
      on("metal", true, () => {
        const a = stack([toTensor(good, "float32"), toTensor({ ...good, values }, "float32")]);
        const error = errorOf(() => svd(a, false).s.dataSync()) as LinAlgError;
        expect(error).toBeInstanceOf(LinAlgError);
        expect(error.batch).toEqual([1]);
      });
    }
  });

  test("more than 512 rows and columns go to cpu, and the reason is stated", () => {
    const error = errorOf(() => on("metal", true, () => svd(toTensor(families.zero(513, 513, 1), "float32"))));
    expect(error?.message).toMatch(/at most 512 rows or columns, got 513 x 513/);
  });
});
