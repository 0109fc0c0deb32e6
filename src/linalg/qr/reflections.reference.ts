/** Reflections in float64, row-major, applied one at a time; shared by the reference implementations. */

/** The norm of a column from row `first` on, without overflow. */
function lengthOf(a: Float64Array, stride: number, column: number, first: number): number {
  let largest = 0;
  for (let at = first * stride + column; at < a.length; at += stride) {
    const magnitude = Math.abs(a[at]);
    if (!(magnitude <= largest)) largest = magnitude; // true for NaN too
  }
  if (!(largest > 0 && largest < Number.POSITIVE_INFINITY)) return largest;
  let sum = 0;
  for (let at = first * stride + column; at < a.length; at += stride) sum += (a[at] / largest) ** 2;
  return largest * Math.sqrt(sum);
}

/**
 * Replaces A by R and the vectors of reflections, and returns tau. A reflection maps a column to a multiple beta of a
 * unit vector. beta has the sign opposite to that of the diagonal element, so that v = x / (alpha − beta) is at most 1.
 */
export function reflect(a: Float64Array, rows: number, columns: number): Float64Array {
  const tau = new Float64Array(Math.min(rows, columns));
  for (let j = 0; j < tau.length; j++) {
    const alpha = a[j * columns + j];
    const below = lengthOf(a, columns, j, j + 1);
    if (below === 0) continue; // the column is already reduced: the reflection is the identity
    const length = Math.hypot(alpha, below);
    const beta = alpha < 0 ? length : -length;
    tau[j] = 1 - alpha / beta;
    for (let i = j + 1; i < rows; i++) a[i * columns + j] = -(a[i * columns + j] / beta) / tau[j];
    a[j * columns + j] = beta;
    const reflection = { a, stride: columns, column: j, tau: tau[j] };
    reflectColumns(reflection, { c: a, stride: columns, first: j + 1, end: columns });
  }
  return tau;
}

/** A reflection, stored in column `column` of a matrix with `stride` columns. */
interface Reflection {
  readonly a: Float64Array;
  readonly stride: number;
  readonly column: number;
  readonly tau: number;
}

/** The columns of a matrix from `first` to before `end`. */
interface Columns {
  readonly c: Float64Array;
  readonly stride: number;
  readonly first: number;
  readonly end: number;
}

/** Replaces columns C by (I − tau v vᵀ) C. */
function reflectColumns({ a, stride, column: j, tau }: Reflection, { c, stride: width, first, end }: Columns): void {
  const rows = c.length / width;
  for (let column = first; column < end; column++) {
    let sum = c[j * width + column];
    for (let i = j + 1; i < rows; i++) sum += a[i * stride + j] * c[i * width + column];
    sum *= tau;
    c[j * width + column] -= sum;
    for (let i = j + 1; i < rows; i++) c[i * width + column] -= a[i * stride + j] * sum;
  }
}

/** Replaces C, of `width` columns, by Q C or Qᵀ C; `a` has `stride` columns. */
export function applyReflections(
  { a, stride, tau }: { readonly a: Float64Array; readonly stride: number; readonly tau: Float64Array },
  c: Float64Array,
  width: number,
  transpose: boolean,
): void {
  if (width === 0) return;
  for (let step = 0; step < tau.length; step++) {
    const column = transpose ? step : tau.length - 1 - step;
    if (tau[column] === 0) continue;
    reflectColumns({ a, stride, column, tau: tau[column] }, { c, stride: width, first: 0, end: width });
  }
}

/** Returns a matrix with ones on the diagonal. */
export function unitMatrix(rows: number, columns: number): Float64Array {
  const unit = new Float64Array(rows * columns);
  for (let i = 0; i < Math.min(rows, columns); i++) unit[i * columns + i] = 1;
  return unit;
}
