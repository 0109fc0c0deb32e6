/**
 * Reductions of columns on the cpu backend, by blocks of rows: whole blocks and single rows, whole vectors and their
 * remainder, with each instruction set.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../../src/backend/cpu/report.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { logsumexp, tensor, toDType, variance } from "../../../src/ops/index.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import { Random } from "../samples.ts";

const { native } = cpuLibrary();
const { isa: initial, isas } = cpuInfo(native);
afterAll(() => configure(native, "isa", initial));

const sizes = [
  [2, 8],
  [8, 16],
  [9, 21],
  [17, 1030], // two blocks of columns
  [523, 37], // two chunks of rows
] as const;

/**
 * The kinds of columns, in turn. Sums of exponentials must be rescaled if they grow, and small deviations are far from
 * 0.
 */
const kinds: readonly ((row: number, random: Random) => number)[] = [
  (_, random) => random.next() * 2 - 1,
  (row, random) => row * 3 + random.next(),
  (row, random) => 1000 - row * 3 + random.next(),
  (_, random) => 1024 + random.next(),
  () => 7,
];
/** Single elements that determine a column's result. */
const special = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];

function matrixOf(rows: number, columns: number): Float64Array {
  const random = new Random(rows * columns);
  const matrix = Float64Array.from({ length: rows * columns }, (_, at) =>
    kinds[(at % columns) % kinds.length](Math.floor(at / columns), random),
  );
  special.forEach((value, index) => {
    matrix[(rows - 1) * columns + 5 + index] = value; // in the last row, which is added last
  });
  for (let row = 0; row < rows; row++) matrix[row * columns] = Number.NEGATIVE_INFINITY;
  return matrix;
}

const columnOf = (matrix: ArrayLike<number>, columns: number, column: number): number[] =>
  Array.from({ length: matrix.length / columns }, (_, row) => matrix[row * columns + column]);

function logSumOf(column: readonly number[]): number {
  const top = Math.max(...column);
  if (!Number.isFinite(top)) return top;
  return top + Math.log(column.reduce((sum, value) => sum + Math.exp(value - top), 0));
}

function varianceOf(column: readonly number[]): number {
  const mean = column.reduce((sum, value) => sum + value, 0) / column.length;
  return column.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (column.length - 1);
}

/**
 * A few roundings of the result. In float64, the error of a variance grows by its condition number (Chan, Golub and
 * LeVeque, 1983): the mean is 3,500 standard deviations from 0 in the fourth kind of column.
 */
const roundings: Readonly<Partial<Record<DType, number>>> = {
  float64: 3500 * 2 ** -52,
  float32: 2 ** -22,
  float16: 2 ** -10,
  bfloat16: 2 ** -7,
};

/** A float16 may be infinite though its sum is not. */
const isClose = (got: number, want: number, rounding: number): boolean =>
  Object.is(got, want) ||
  (rounding === roundings.float16 && got === Math.f16round(want)) ||
  Math.abs(got - want) <= rounding * Math.abs(want);

describe.each(isas)("reductions of columns are accurate with %s", (isa) => {
  test.each(Object.entries(roundings) as [DType, number][])("reductions of %s are correct", (dtype, rounding) => {
    configure(native, "isa", isa);
    for (const [rows, columns] of sizes)
      withStrict(true, () =>
        withBackend("cpu", () => {
          const x = toDType(tensor(matrixOf(rows, columns), { shape: [rows, columns] }), dtype);
          const exact = toDType(x, "float64").dataSync() as Float64Array;
          const [logSums, variances] = [logsumexp, variance].map((compute) =>
            toDType(compute(x, { dim: 0 }), "float64").dataSync(),
          );
          const wrong = Array.from({ length: columns }, (_, at) => columnOf(exact, columns, at)).flatMap(
            (column, at) => [
              ...(isClose(logSums[at] as number, logSumOf(column), rounding)
                ? []
                : [["logsumexp", at, logSums[at], logSumOf(column)]]),
              ...(isClose(variances[at] as number, varianceOf(column), rounding)
                ? []
                : [["variance", at, variances[at], varianceOf(column)]]),
            ],
          );
          expect(wrong).toEqual([]);
        }),
      );
  });
});
