/** Checks of singular value decompositions. */
import { expect } from "bun:test";
import { svd } from "../../src/linalg/svd/svd.ts";
import { difference, identity, type Matrix, matrix, norm1, product, transposed } from "./matrices.ts";
import { type RealDType, ratio, THRESHOLD, toMatrix, toTensor } from "./run.ts";

/** The factors of one matrix. */
export interface SvdMatrices {
  readonly u: Matrix;
  readonly s: Float64Array;
  readonly vh: Matrix;
}

/** Decomposes a matrix and checks the result: ‖A − U Σ Vᵀ‖, ‖UᵀU − I‖, ‖VᵀV − I‖, descending values and signs. */
export function checkSvd(a: Matrix, dtype: RealDType, fullMatrices: boolean, of: string): SvdMatrices {
  const { u, s, vh } = svd(toTensor(a, dtype), { fullMatrices });
  const found = { u: toMatrix(u), s: Float64Array.from(s.dataSync() as Float64Array), vh: toMatrix(vh) };
  checkFactors(a, found, dtype, of);
  const count = Math.min(a.rows, a.columns);
  expect([u.shape, s.shape, vh.shape]).toEqual([
    [a.rows, fullMatrices ? a.rows : count],
    [count],
    [fullMatrices ? a.columns : count, a.columns],
  ]);
  return found;
}

export function checkFactors(a: Matrix, { u, s, vh }: SvdMatrices, dtype: RealDType, of: string): void {
  const weighted = matrix(u.rows, vh.rows, (i, k) => (k < s.length ? u.values[i * u.columns + k] * s[k] : 0));
  const size = Math.max(a.rows, a.columns);
  const what = `${of} ${a.rows}x${a.columns}`;
  expectSmall(ratio(norm1(difference(a, product(weighted, vh))), norm1(a) * size, dtype, of), `A − UΣVᵀ, ${what}`);
  checkOrthonormal(u, dtype, of);
  checkOrthonormal(transposed(vh), dtype, of);
  for (const [k, value] of s.entries()) {
    if (!(value >= 0)) throw new Error(`${what}: singular value ${k} is ${value}`);
    if (k > 0 && value > s[k - 1]) throw new Error(`${what}: singular value ${k} is out of order`);
  }
  for (let k = 0; k < u.columns; k++) checkSign(u, k, what);
}

/** ‖QᵀQ − I‖ for columns, or for rows if there are more columns than rows. */
function checkOrthonormal(q: Matrix, dtype: RealDType, of: string): void {
  const error = norm1(difference(product(transposed(q), q), identity(q.columns)));
  expectSmall(ratio(error, q.rows, dtype, of), `QᵀQ − I, ${of} ${q.rows}x${q.columns}`);
}

function checkSign({ rows, columns, values }: Matrix, k: number, what: string): void {
  const column = Array.from({ length: rows }, (_, i) => values[i * columns + k]);
  const largest = Math.max(...column.map(Math.abs));
  const first = column.find((value) => Math.abs(value) === largest)!;
  if (!(first > 0)) throw new Error(`${what}: the largest element of left vector ${k} is ${first}`);
}

function expectSmall(own: number, what: string): void {
  if (!(own < THRESHOLD)) throw new Error(`${what}: expected a ratio below ${THRESHOLD}, got ${own}`);
  expect(own).toBeLessThan(THRESHOLD);
}
