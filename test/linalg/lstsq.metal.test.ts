/** The kernels of least squares: on the device's numeric variants, their memory traffic and numbers of dispatches. */
import { describe, expect, test } from "bun:test";
import { LinAlgError } from "../../src/core/errors.ts";
import { type LstsqDriver, lstsq } from "../../src/linalg/qr/lstsq.ts";
import { mul } from "../../src/ops/elementwise/arithmetic.ts";
import { stack } from "../../src/ops/join/cat.ts";
import { select } from "../../src/ops/view/slice.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { errorOf } from "../support/errors.ts";
import { difference, families, type Matrix, norm1, product, rounded, transposed } from "./matrices.ts";
import { on, places, ratio, THRESHOLD, toMatrix, toTensor } from "./run.ts";
import { watched } from "./traffic.ts";
import { checked, testVariants } from "./variants.ts";

const hasMetal = places.some(({ backend }) => backend === "metal");
const onMetal = (own: Matrix): Tensor => on("metal", true, () => toTensor(own, "float32"));
const repeated = (own: Matrix, count: number): Tensor => {
  const one = onMetal(own);
  return on("metal", true, () => stack(Array.from({ length: count }, () => one)));
};

/** The residual is orthogonal to the range of A. */
function checkSolution(a: Matrix, driver: LstsqDriver, of: string): void {
  const b = rounded(families.random(a.rows, 3, 5));
  const { solution, rank } = checked(() => on("metal", true, () => lstsq(onMetal(a), onMetal(b), { driver })));
  const x = toMatrix(solution);
  const outside = product(transposed(a), difference(b, product(a, x)));
  const scale = norm1(transposed(a)) * (norm1(b) + norm1(a) * norm1(x)) * Math.max(a.rows, a.columns);
  expect(ratio(norm1(outside), scale, "float32", `lstsq, ${of}`)).toBeLessThan(THRESHOLD);
  if (of === "rank-deficient") expect(Number(rank.item())).toBe(Math.ceil(Math.min(a.rows, a.columns) / 2));
  if (driver === "gelsy" && Number(rank.item()) < a.rows) return;
  if (a.rows > a.columns) return;
  const met = norm1(difference(b, product(a, x)));
  expect(ratio(met, norm1(a) * norm1(x) * a.columns, "float32", `lstsq, ${of}, B - AX`)).toBeLessThan(THRESHOLD);
}

const NAME = "solutions of every rank";
if (hasMetal) testVariants(import.meta.path, NAME);

describe.skipIf(!hasMetal)("lstsq on metal takes few dispatches", () => {
  test(NAME, () => {
    for (const [family, make] of Object.entries(families)) {
      if (family.includes("graded rows")) continue; // where denormals are flushed, rows are lost
      for (const [rows, columns] of [
        [7, 4],
        [4, 7],
        [9, 9],
      ] as const)
        checkSolution(rounded(make(rows, columns, 3)), "gelsy", family);
    }
    checkSolution(rounded(families.random(6, 11, 3)), "gels", "random");
  });

  test.each([
    [200, 60, "gelsy"], // the triangle fits in threadgroup memory
    [130, 97, "gels"], // no part fits in threadgroup memory
  ] as const)("%d x %d, %s: a batch takes as many dispatches as one matrix", (rows, columns, driver) => {
    const a = rounded(families.random(rows, columns, 3));
    checkSolution(a, driver, `${rows} x ${columns}`);
    const b = rounded(families.random(rows, 2, 4));
    const [one, two] = [1, 2].map((count) => {
      const [own, sides] = [repeated(a, count), repeated(b, count)];
      return watched(() => lstsq(own, sides, { driver: "gels" })).dispatches;
    });
    expect(one).toBe(two);
  });

  test("if the triangle does not fit threadgroup memory, the cpu backend pivots, and the reason is stated", () => {
    const of = (rows: number, columns: number) => () =>
      on("metal", true, () =>
        lstsq(repeated(families.random(rows, columns, 1), 1), onMetal(families.random(rows, 1, 2))),
      );
    expect(errorOf(of(120, 97))?.message).toMatch(/the triangle of 97 rows that is pivoted must fit 32768 bytes/);
    expect(errorOf(of(40, 300))?.message).toMatch(/a matrix with more columns than rows must fit 32768 bytes/);
  });

  test.each([
    [8, 8, 1],
    [40, 40, 3],
    [12, 40, 3],
  ])("%d x %d: each element is moved once, in one dispatch", (rows, columns, width) => {
    for (const count of [1, 3]) {
      const a = repeated(rounded(families.random(rows, columns, 5)), count);
      const b = repeated(rounded(families.random(rows, width, 6)), count);
      const { dispatches, read, written } = watched(() => lstsq(a, b, { driver: "gels" }));
      expect({ dispatches, read, written }).toEqual({
        dispatches: 1,
        read: 4 * count * rows * (columns + width),
        written: 4 * count * (columns * width + 2),
      });
    }
  });

  test("if the triangle of a larger matrix has a 0, gels names the matrix and the column", () => {
    const a = onMetal(rounded(families.random(110, 97, 3)));
    const error = on("metal", true, () => {
      const keep = onMetal({
        rows: 1,
        columns: 97,
        values: Float64Array.from({ length: 97 }, (_, j) => Number(j !== 0)),
      });
      const both = stack([a, mul(a, keep)]);
      const { solution } = lstsq(both, select(both, 2, 5), { driver: "gels" });
      return errorOf(() => solution.dataSync());
    }) as LinAlgError;
    expect(error).toBeInstanceOf(LinAlgError);
    expect([error.batch, error.pivot]).toEqual([[1], 1]);
  });
});
