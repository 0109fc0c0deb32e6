#include "complex_reflection.h"

using namespace orchard;

namespace {

// Calls body(matrix, scratch) with scratch of `elements` complex numbers.
template <class T, class Body> void for_each_complex(int64_t batch, int64_t operations, int64_t elements, Body &&body) {
  if (batch == 0) return;
  for_each_matrix<T>(batch, 4 * operations, scratch_product({2, elements}),
                     [&](int64_t matrix, T *work) { body(matrix, reinterpret_cast<Complex<T> *>(work)); });
}

// Computes L of A = L Lᴴ from the lower triangle, row by row: the elements of row i follow from those of the rows above
// it. Only the real parts of the diagonal are read. Returns the first minor that is not positive, or 0.
template <class T> int32_t cholesky(const Complex<T> *a, Complex<T> *l, int64_t n) {
  std::fill_n(l, n * n, Complex<T>{0, 0});
  for (int64_t i = 0; i < n; i++) {
    Complex<T> *row = l + i * n;
    T rest = a[i * n + i].re;
    for (int64_t j = 0; j < i; j++) {
      Complex<T> sum = a[i * n + j];
      const Complex<T> *other = l + j * n;
      for (int64_t k = 0; k < j; k++) sum = sum - row[k] * conjugate(other[k]);
      row[j] = {sum.re / other[j].re, sum.im / other[j].re};
      rest -= row[j].re * row[j].re + row[j].im * row[j].im;
    }
    if (!(rest > 0)) {
      std::fill_n(row, i, Complex<T>{0, 0});
      return static_cast<int32_t>(i + 1);
    }
    row[i] = {std::sqrt(rest), 0};
  }
  return 0;
}

void complex_cholesky(const ComplexCholeskyBlock &block, Operands operands) {
  with_real(block.dtype, [&](auto real) {
    using T = decltype(real);
    const int64_t batch = block.batch, n = block.rows;
    const Complex<T> *a = inputs<T>(operands, 0, batch, n, n);
    Complex<T> *l = results<T>(operands, 1, batch, n, n);
    int32_t *info = operands.results<int32_t>(2, 0, Extent(batch));
    for_each_complex<T>(batch, n * n * n / 3, 0,
                        [&](int64_t at, Complex<T> *) { info[at] = cholesky(a + at * n * n, l + at * n * n, n); });
  });
}

// As in LAPACK's getrf, the pivot has the largest |re| + |im|, the first one on ties. NaN is skipped unless it is
// first.
template <class T> int32_t factorize(Complex<T> *a, int64_t rows, int64_t columns, bool pivot, int32_t *pivots) {
  int32_t info = 0;
  for (int64_t k = 0; k < std::min(rows, columns); k++) {
    int64_t best = k;
    for (int64_t i = k + 1; pivot && i < rows; i++)
      if (size_of(a[i * columns + k]) > size_of(a[best * columns + k])) best = i;
    pivots[k] = static_cast<int32_t>(best + 1);
    Complex<T> *row = a + k * columns;
    if (best != k) std::swap_ranges(row, row + columns, a + best * columns);
    if (size_of(row[k]) == 0) {
      if (info == 0) info = static_cast<int32_t>(k + 1);
      if (pivot) continue; // the column is 0
    }
    for (int64_t i = k + 1; i < rows; i++) {
      Complex<T> *other = a + i * columns;
      other[k] = other[k] / row[k];
      subtract(other + k + 1, row + k + 1, other[k], columns - k - 1);
    }
  }
  return info;
}

void complex_lu(const ComplexLuBlock &block, Operands operands) {
  with_real(block.dtype, [&](auto real) {
    using T = decltype(real);
    const int64_t batch = block.batch, rows = block.rows, columns = block.columns, steps = std::min(rows, columns);
    const Complex<T> *a = inputs<T>(operands, 0, batch, rows, columns);
    Complex<T> *lu = results<T>(operands, 1, batch, rows, columns);
    int32_t *pivots = operands.results<int32_t>(2, 0, matrices(batch, 1, steps));
    int32_t *info = operands.results<int32_t>(3, 0, Extent(batch));
    for_each_complex<T>(batch, rows * columns * steps, 0, [&](int64_t at, Complex<T> *) {
      Complex<T> *factors = lu + at * rows * columns;
      std::copy_n(a + at * rows * columns, rows * columns, factors);
      info[at] = factorize(factors, rows, columns, block.pivot, pivots + at * steps);
    });
  });
}

// X[i] = (B[i] − Σ A[i, k] X[k] over the known rows k) / A[i, i].
template <class T>
void substitute(const Complex<T> *a, Complex<T> *x, int64_t n, int64_t columns, bool upper, bool unit) {
  for (int64_t step = 0; step < n; step++) {
    const int64_t i = upper ? n - 1 - step : step;
    Complex<T> *row = x + i * columns;
    for (int64_t known = 0; known < step; known++) {
      const int64_t k = upper ? n - 1 - known : known;
      subtract(row, x + k * columns, a[i * n + k], columns);
    }
    for (int64_t c = 0; !unit && c < columns; c++) row[c] = row[c] / a[i * n + i];
  }
}

void complex_triangular(const ComplexTriangularBlock &block, Operands operands) {
  with_real(block.dtype, [&](auto real) {
    using T = decltype(real);
    const int64_t batch = block.batch, n = block.rows, columns = block.columns;
    const Complex<T> *a = inputs<T>(operands, 0, batch, n, n);
    const Complex<T> *b = inputs<T>(operands, 1, batch, n, columns);
    Complex<T> *x = results<T>(operands, 2, batch, n, columns);
    if (matrices(batch, n, columns).is_empty()) return; // for any number of empty matrices
    for_each_complex<T>(batch, n * n * columns, 0, [&](int64_t at, Complex<T> *) {
      Complex<T> *solution = x + at * n * columns;
      std::copy_n(b + at * n * columns, n * columns, solution);
      substitute(a + at * n * n, solution, n, columns, block.upper, block.unit_diagonal);
    });
  });
}

// Scratch of a QR factorization: the matrix, a column, a row, and the factors tau.
inline int64_t qr_elements(int64_t rows, int64_t columns, int64_t width) {
  return rows * columns + rows + std::max(columns, width) + std::min(rows, columns);
}

// Computes the first `width` columns of Q, and R, with a diagonal of R that is real and at least 0.
template <class T>
void factorize_qr(const Complex<T> *a, Complex<T> *q, Complex<T> *r, const ComplexQrBlock &block, Complex<T> *work) {
  const int64_t m = block.rows, n = block.columns, width = block.width, steps = std::min(m, n);
  Complex<T> *whole = work, *v = whole + m * n, *row = v + m, *taus = row + std::max(n, width);
  std::copy_n(a, m * n, whole);
  for (int64_t k = 0; k < steps; k++) {
    for (int64_t i = k; i < m; i++) v[i] = whole[i * n + k];
    const ComplexReflection<T> found = reflect(v + k, m - k);
    taus[k] = {found.tau, 0};
    reflect_rows(v + k, found.tau, whole + k * n + k + 1, m - k, n - k - 1, n, row);
    whole[k * n + k] = found.beta;
    for (int64_t i = k + 1; i < m; i++) whole[i * n + k] = v[i];
  }
  std::fill_n(q, m * width, Complex<T>{0, 0});
  for (int64_t k = 0; k < width; k++) q[k * width + k] = {1, 0};
  for (int64_t k = std::min(steps, width); k-- > 0;) {
    v[k] = {1, 0};
    for (int64_t i = k + 1; i < m; i++) v[i] = whole[i * n + k];
    reflect_rows(v + k, taus[k].re, q + k * width + k, m - k, width - k, width, row);
  }
  const int64_t inner = width > 0 ? width : steps;
  std::fill_n(r, inner * n, Complex<T>{0, 0});
  for (int64_t k = 0; k < std::min(inner, steps); k++) {
    const Complex<T> diagonal = whole[k * n + k], phase = phase_of(diagonal);
    r[k * n + k] = {absolute(diagonal), 0};
    for (int64_t j = k + 1; j < n; j++) r[k * n + j] = conjugate(phase) * whole[k * n + j];
    for (int64_t i = 0; k < width && i < m; i++) q[i * width + k] = q[i * width + k] * phase;
  }
}

void complex_qr(const ComplexQrBlock &block, Operands operands) {
  with_real(block.dtype, [&](auto real) {
    using T = decltype(real);
    const int64_t batch = block.batch, m = block.rows, n = block.columns, width = block.width;
    const int64_t inner = width > 0 ? width : std::min(m, n);
    if (width != 0 && width != m && width != std::min(m, n))
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected no columns of Q, all of them, or as many as the smaller size");
    const Complex<T> *a = inputs<T>(operands, 0, batch, m, n);
    Complex<T> *q = results<T>(operands, 1, batch, m, width), *r = results<T>(operands, 2, batch, inner, n);
    if (matrices(batch, m, width).is_empty() && matrices(batch, inner, n).is_empty()) return;
    for_each_complex<T>(batch, 2 * m * n * (std::min(m, n) + width), qr_elements(m, n, width),
                        [&](int64_t at, Complex<T> *work) {
                          factorize_qr(a + at * m * n, q + at * m * width, r + at * inner * n, block, work);
                        });
  });
}

ORCHARD_FUNCTION("complexCholesky", complex_cholesky, ComplexCholeskyBlock, 3)
ORCHARD_FUNCTION("complexLu", complex_lu, ComplexLuBlock, 4)
ORCHARD_FUNCTION("complexTriangular", complex_triangular, ComplexTriangularBlock, 3)
ORCHARD_FUNCTION("complexQr", complex_qr, ComplexQrBlock, 3)

} // namespace
