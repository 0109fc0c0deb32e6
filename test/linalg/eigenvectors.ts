/** What LAPACK's test suite takes for the error of eigenvalues and eigenvectors (dsyt21). */
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
  const scale = norm1(a) || 1; // so that what lies near the smallest number does not underflow
  const unit = scaled(a, 1 / scale);
  const lengths = matrix(n, n, (i, j) => vectors.values[i * n + j]! * (values[j]! / scale));
  const residual = norm1(difference(product(unit, vectors), lengths));
  const departure = norm1(difference(product(transposed(vectors), vectors), identity(n)));
  return Math.max(ratio(residual, n, dtype, label), ratio(departure, n, dtype, `${label}, orthogonality`));
}
