/** Matrices that LAPACK factorizes one at a time, while several threads copy, scan and transpose them. */
import { afterAll, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../src/backend/cpu/loader.ts";
import { LinAlgError } from "../../src/core/errors.ts";
import { cholesky } from "../../src/linalg/cholesky/cholesky.ts";
import { eigh } from "../../src/linalg/eigh/eigh.ts";
import { svd } from "../../src/linalg/svd/svd.ts";
import { errorOf } from "../support/errors.ts";
import { usually } from "../support/repeats.ts";
import { residualOf } from "./eigenvectors.ts";
import { definiteFamilies, difference, families, type Matrix, matrix, norm1, product, transposed } from "./matrices.ts";
import { inDType, on, type RealDType, ratio, THRESHOLD, toMatrix, toTensor } from "./run.ts";
import { checkSvd } from "./svd.ts";

const { native } = cpuLibrary();
afterAll(() => configure(native, "threads", "auto"));

/** Sizes below and above those from which LAPACK uses all threads; with a smaller last part of rows. */
const sizes = [290, 370] as const;

/** One triangle of a matrix; the other triangle is NaN. */
const triangleOf = ({ rows, columns, values }: Matrix, upper: boolean): Matrix =>
  matrix(rows, columns, (i, j) => ((upper ? j >= i : j <= i) ? values[i * columns + j] : Number.NaN));

const zerosAbove = ({ rows, columns, values }: Matrix): boolean =>
  Array.from({ length: rows }, (_, i) => values.subarray(i * columns + i + 1, (i + 1) * columns)).every((row) =>
    row.every((value) => value === 0),
  );

function checkCholesky(size: number, upper: boolean, dtype: RealDType): void {
  const a = inDType(definiteFamilies.random(size, size), dtype);
  const factor = toMatrix(cholesky(toTensor(triangleOf(a, upper), dtype), { upper }));
  const lower = upper ? transposed(factor) : factor;
  expect(zerosAbove(lower)).toBe(true);
  const residual = norm1(difference(a, product(lower, transposed(lower))));
  expect(ratio(residual, size * norm1(a), dtype, "cholesky, large, one triangle")).toBeLessThan(THRESHOLD);
}

/** Whether the first of the largest elements of each column is positive. */
const hasSigns = ({ rows, columns, values }: Matrix): boolean =>
  Array.from({ length: columns }, (_, j) => Array.from({ length: rows }, (_, i) => values[i * columns + j])).every(
    (column) => {
      const largest = Math.max(...column.map(Math.abs));
      return column.find((value) => Math.abs(value) === largest)! > 0;
    },
  );

function checkEigh(size: number, upper: boolean, dtype: RealDType): void {
  const half = families.random(size, size, size);
  const own = (i: number, j: number): number => half.values[i * size + j];
  const a = inDType(
    matrix(size, size, (i, j) => own(i, j) + own(j, i)),
    dtype,
  );
  const found = eigh(toTensor(triangleOf(a, upper), dtype), { UPLO: upper ? "U" : "L" });
  const values = Array.from(found.eigenvalues.dataSync() as Float64Array);
  const vectors = toMatrix(found.eigenvectors);
  expect(values).toEqual(values.toSorted((x, y) => x - y));
  expect(hasSigns(vectors)).toBe(true);
  expect(residualOf(a, { values, vectors }, dtype, "eigh, large")).toBeLessThan(THRESHOLD);
}

describe.each(["float32", "float64"] as const)("the linear algebra of large matrices, %s", (dtype) => {
  const triangles = usually([false, true], (upper) => upper === (dtype === "float32"));
  test.each(triangles)("cholesky and eigh read one triangle, upper: %p", (upper) => {
    configure(native, "threads", "3");
    on("cpu", true, () => {
      for (const size of sizes) checkCholesky(size, upper, dtype);
      for (const size of sizes) checkEigh(size, upper, dtype);
    });
  });

  test.each([
    [290, 270, false],
    [300, 440, true],
  ] as const)("svd of %p x %p is accurate, full: %p", (rows, columns, full) => {
    configure(native, "threads", "3");
    const a = inDType(families.random(rows, columns, 5), dtype);
    on("cpu", true, () => checkSvd(a, dtype, full, "svd, large"));
  });

  test("an element that is not finite is found in every part", () => {
    const size = 370;
    for (const at of [0, 70_000, size * size - 1])
      for (const value of [Number.NaN, Number.NEGATIVE_INFINITY]) {
        const a = families.random(size, size, 7);
        a.values[at] = value;
        const all = toTensor(a, dtype);
        const [row, column] = [Math.floor(at / size), at % size];
        on("cpu", true, () => {
          expect(errorOf(() => svd(all).s.dataSync())).toBeInstanceOf(LinAlgError);
          const UPLO = column > row ? "U" : "L";
          expect(errorOf(() => eigh(all, { UPLO }).eigenvalues.dataSync())).toBeInstanceOf(LinAlgError);
        });
      }
  });
});
