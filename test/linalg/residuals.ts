/** Errors of factorizations, in roundings: the residuals of LAPACK's test suite. */
import { difference, identity, type Matrix, matrix, norm1, product, scaled, transposed } from "./matrices.ts";
import { type RealDType, ratio } from "./run.ts";

/**
 * The matrix divided by its norm, so that products of its largest or smallest numbers neither overflow nor underflow.
 */
const unit = (a: Matrix): Matrix => scaled(a, 1 / (norm1(a) || 1));

/** ‖A − B‖ / (‖A‖ max(m, n) ε), of a product B that has to equal A. */
export const departure = (a: Matrix, b: Matrix, dtype: RealDType, of: string): number =>
  ratio(norm1(difference(a, b)), norm1(a) * Math.max(a.rows, a.columns), dtype, of);

/** ‖QᵀQ − 1‖ / (m ε), for orthonormal columns. */
export const orthogonality = (q: Matrix, dtype: RealDType, of: string): number =>
  ratio(norm1(difference(product(transposed(q), q), identity(q.columns))), q.rows, dtype, `${of}, orthogonality`);

/** ‖AᵀA − RᵀR‖ / (‖Aᵀ‖ ‖A‖ max(m, n) ε), for a triangle whose Q is not known. */
export function gram(a: Matrix, r: Matrix, dtype: RealDType, of: string): number {
  const scale = norm1(a) || 1;
  const [own, other] = [scaled(a, 1 / scale), scaled(r, 1 / scale)];
  const residual = difference(product(transposed(own), own), product(transposed(other), other));
  return ratio(norm1(residual), norm1(transposed(own)) * Math.max(a.rows, a.columns), dtype, of);
}

/** ‖Qᵀ B − C‖ / (‖B‖ m ε), of a product C with orthonormal columns. */
export const turned = (q: Matrix, b: Matrix, c: Matrix, dtype: RealDType, of: string): number =>
  ratio(norm1(difference(product(transposed(q), b), c)), norm1(b) * q.rows, dtype, of);

/** ‖A X − B‖ / (‖A‖ ‖X‖ n ε), the largest over the columns. */
export function solution(a: Matrix, x: Matrix, b: Matrix, dtype: RealDType, of: string): number {
  const scale = norm1(a) || 1;
  const residual = difference(product(scaled(a, 1 / scale), x), scaled(b, 1 / scale));
  let worst = 0;
  for (let j = 0; j < b.columns; j++) {
    const column = (own: Matrix): Matrix => matrix(own.rows, 1, (i) => own.values[i * own.columns + j]);
    worst = Math.max(worst, ratio(norm1(column(residual)), norm1(column(x)) * a.rows, dtype, of));
  }
  return worst;
}

/** ‖A A⁻¹ − 1‖ / (‖A‖ ‖A⁻¹‖ n ε). */
export function inverse(a: Matrix, x: Matrix, dtype: RealDType, of: string): number {
  const scale = norm1(a) || 1;
  const residual = norm1(difference(product(unit(a), scaled(x, scale)), identity(a.rows)));
  return ratio(residual, norm1(x) * scale * a.rows, dtype, of);
}

/** ‖Aᵀ (B − A X)‖ / (‖A‖ (‖B‖ + ‖A‖ ‖X‖) max(m, n) ε), of a least-squares solution. */
export function leastSquares(a: Matrix, x: Matrix, b: Matrix, dtype: RealDType, of: string): number {
  const scale = norm1(a) || 1;
  const own = scaled(a, 1 / scale);
  const lengths = scaled(x, scale);
  const residual = difference(b, product(own, lengths));
  const size = norm1(transposed(own)) * (norm1(b) + norm1(lengths)) * Math.max(a.rows, a.columns);
  return ratio(norm1(product(transposed(own), residual)), size, dtype, of);
}

/** The largest difference between two lists of numbers, in units of ε times the largest number times their count. */
export function distance(values: Float64Array, others: Float64Array, dtype: RealDType, of: string): number {
  let [worst, largest] = [0, 0];
  for (const [at, value] of values.entries()) {
    const difference = Math.abs(value - others[at]);
    worst = difference > worst || Number.isNaN(difference) ? difference : worst;
    largest = Math.max(largest, Math.abs(others[at]));
  }
  return ratio(worst, largest * Math.max(1, values.length), dtype, of);
}
