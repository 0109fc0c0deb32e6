/** The errors of eigenvalues and eigenvectors in LAPACK's test suite (dsyt21). */
import { difference, identity, type Matrix, matrix, norm1, product, scaled, transposed } from "./matrices.ts";
import { type RealDType, ratio } from "./run.ts";

/** Eigenvalues, and eigenvectors in columns. */
export interface Eigen {
  readonly values: readonly number[];
  readonly vectors: Matrix;
}

/** The worse of the residuals ‖A V − V Λ‖ / (‖A‖ n ε) and ‖Vᵀ V − 1‖ / (n ε). */
export function residualOf(a: Matrix, { values, vectors }: Eigen, dtype: RealDType, label: string): number {
  const n = a.rows;
  const scale = norm1(a) || 1; // so that numbers near the smallest one do not underflow
  const unit = scaled(a, 1 / scale);
  const lengths = matrix(n, n, (i, j) => vectors.values[i * n + j] * (values[j] / scale));
  const residual = norm1(difference(product(unit, vectors), lengths));
  const departure = norm1(difference(product(transposed(vectors), vectors), identity(n)));
  return Math.max(ratio(residual, n, dtype, label), ratio(departure, n, dtype, `${label}, orthogonality`));
}

/**
 * The eigenvalues of a positive definite matrix in float64, each accurate in all its digits if scaling can make the
 * matrix well-conditioned: squares of the lengths of the columns of its Cholesky factor, once they are orthogonal
 * (K. Veselić and V. Hari, "A note on a one-sided Jacobi algorithm", 1989).
 */
export function definiteEigenvalues({ rows: n, values: a }: Matrix): number[] {
  const columns = Array.from({ length: n }, () => new Float64Array(n));
  for (let j = 0; j < n; j++)
    for (let i = j; i < n; i++) {
      let left = a[i * n + j];
      for (let k = 0; k < j; k++) left -= columns[k][i] * columns[k][j];
      columns[j][i] = i === j ? Math.sqrt(left) : left / columns[j][j];
    }
  const dot = (x: Float64Array, y: Float64Array): number => x.reduce((sum, value, at) => sum + value * y[at], 0);
  for (let sweep = 0; sweep < 30; sweep++)
    for (let p = 0; p < n; p++)
      for (let q = p + 1; q < n; q++) {
        const [x, y] = [columns[p], columns[q]];
        const [xx, yy, xy] = [dot(x, x), dot(y, y), dot(x, y)];
        if (Math.abs(xy) <= 2 ** -53 * Math.sqrt(xx) * Math.sqrt(yy)) continue;
        const zeta = (yy - xx) / (2 * xy);
        const tangent = (zeta < 0 ? -1 : 1) / (Math.abs(zeta) + Math.hypot(1, zeta));
        const cosine = 1 / Math.hypot(1, tangent);
        for (let i = 0; i < n; i++) [x[i], y[i]] = [cosine * (x[i] - tangent * y[i]), cosine * (y[i] + tangent * x[i])];
      }
  return columns.map((x) => dot(x, x)).sort((x, y) => x - y);
}
