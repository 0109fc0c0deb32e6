// Reductions of complex matrices to real ones of two diagonals, whose eigenvalues or singular values are the same.
#include "complex_reflection.h"

using namespace orchard;

namespace {

template <class T> void set_identity(Complex<T> *q, int64_t rows, int64_t columns) {
  std::fill_n(q, rows * columns, Complex<T>{0, 0});
  for (int64_t k = 0; k < std::min(rows, columns); k++) q[k * columns + k] = {1, 0};
}

template <class T> void scale_column(Complex<T> *q, int64_t rows, int64_t columns, int64_t k, Complex<T> factor) {
  for (int64_t i = 0; i < rows; i++) q[i * columns + k] = q[i * columns + k] * factor;
}

// Copies a Hermitian matrix from one of its triangles. Returns the first row, counted from 1, with an element that is
// not finite, or 0.
template <class T> int32_t copy_hermitian(const Complex<T> *a, Complex<T> *to, int64_t n, bool upper) {
  int64_t row = n;
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < i; j++) {
      const Complex<T> found = upper ? conjugate(a[j * n + i]) : a[i * n + j];
      if (!std::isfinite(found.re) || !std::isfinite(found.im)) row = std::min(row, j);
      to[i * n + j] = found;
      to[j * n + i] = conjugate(found);
    }
    to[i * n + i] = {a[i * n + i].re, 0};
    if (!std::isfinite(a[i * n + i].re)) row = std::min(row, i);
  }
  return row == n ? 0 : static_cast<int32_t>(row + 1);
}

// A = H A H for a Hermitian matrix of n rows, `stride` apart. With p = tau A v and w = p − tau (vᴴ p) v / 2, it is
// A − v wᴴ − w vᴴ. `work` has 2 n elements.
template <class T>
void reflect_both_sides(const Complex<T> *v, T tau, Complex<T> *a, int64_t n, int64_t stride, Complex<T> *work) {
  if (tau == 0) return;
  Complex<T> *w = work, *vh = work + n; // wᴴ and vᴴ
  T inner = 0;
  std::fill_n(w, n, Complex<T>{0, 0});
  for (int64_t i = 0; i < n; i++) vh[i] = conjugate(v[i]);
  for (int64_t i = 0; i < n; i++) subtract(w, a + i * stride, vh[i] * -tau, n);
  for (int64_t i = 0; i < n; i++) inner += w[i].re * v[i].re - w[i].im * v[i].im;
  subtract(w, vh, Complex<T>{tau * inner / 2, 0}, n);
  for (int64_t i = 0; i < n; i++) {
    subtract(a + i * stride, w, v[i], n);
    subtract(a + i * stride, vh, conjugate(w[i]), n);
  }
}

// A = Q T Qᴴ. Destroys A, and stores the whole T. `work` has 4 n elements.
template <class T> void tridiagonalize(Complex<T> *a, T *t, Complex<T> *q, int64_t n, Complex<T> *work) {
  Complex<T> *v = work, *row = v + n, *taus = row + 2 * n;
  std::fill_n(t, n * n, T(0));
  for (int64_t k = 0; k + 1 < n; k++) {
    const int64_t first = k + 1, count = n - first;
    for (int64_t i = first; i < n; i++) v[i] = a[i * n + k];
    const ComplexReflection<T> found = reflect(v + first, count);
    taus[k] = {found.tau, 0};
    reflect_both_sides(v + first, found.tau, a + first * n + first, count, n, row);
    for (int64_t i = first + 1; i < n; i++) a[i * n + k] = v[i];
    a[first * n + k] = found.beta;
  }
  set_identity(q, n, n);
  for (int64_t k = n - 1; k-- > 0;) {
    const int64_t first = k + 1, count = n - first;
    v[first] = {1, 0};
    for (int64_t i = first + 1; i < n; i++) v[i] = a[i * n + k];
    reflect_rows(v + first, taus[k].re, q + first * n + first, count, count, n, row);
  }
  Complex<T> phase = {1, 0}; // of a diagonal matrix D for which Dᴴ T D is real
  for (int64_t k = 0; k < n; k++) {
    t[k * n + k] = a[k * n + k].re;
    scale_column(q, n, n, k, phase);
    if (k + 1 == n) break;
    const Complex<T> below = a[(k + 1) * n + k];
    t[(k + 1) * n + k] = t[k * n + k + 1] = absolute(below);
    phase = phase * phase_of(below);
    phase = phase_of(phase);
  }
}

void complex_tridiagonal(const ComplexTridiagonalBlock &block, Operands operands) {
  with_real(block.dtype, [&](auto real) {
    using T = decltype(real);
    const int64_t batch = block.batch, n = block.size;
    const Complex<T> *a = inputs<T>(operands, 0, batch, n, n);
    T *t = operands.results<T>(1, 0, matrices(batch, n, n));
    Complex<T> *q = results<T>(operands, 2, batch, n, n);
    int32_t *info = operands.results<int32_t>(3, 0, Extent(batch));
    if (batch == 0) return;
    for_each_matrix<T>(batch, 16 * n * n * n, scratch_product({2, n, n + 4}), [&](int64_t at, T *scratch) {
      Complex<T> *copy = reinterpret_cast<Complex<T> *>(scratch);
      info[at] = copy_hermitian(a + at * n * n, copy, n, block.upper);
      if (info[at] != 0) {
        std::fill_n(t + at * n * n, n * n, std::numeric_limits<T>::quiet_NaN());
        return set_identity(q + at * n * n, n, n);
      }
      tridiagonalize(copy, t + at * n * n, q + at * n * n, n, copy + n * n);
    });
  });
}

// Reflects the part of a row from `first` on to a multiple of the first unit vector, and the rows below by the same
// reflection. Returns tau; the row's part becomes the conjugate of v, with beta in its first element.
template <class T> T reflect_right(Complex<T> *a, int64_t rows, int64_t columns, int64_t k, Complex<T> *v) {
  const int64_t first = k + 1, count = columns - first;
  Complex<T> *row = a + k * columns + first;
  for (int64_t j = 0; j < count; j++) v[j] = conjugate(row[j]);
  const ComplexReflection<T> found = reflect(v, count);
  for (int64_t j = 1; j < count; j++) row[j] = conjugate(v[j]);
  row[0] = {1, 0};
  for (int64_t i = first; found.tau != 0 && i < rows; i++) {
    Complex<T> *other = a + i * columns + first, inner = {0, 0};
    for (int64_t j = 0; j < count; j++) inner = inner + other[j] * v[j];
    subtract(other, row, inner * found.tau, count);
  }
  row[0] = conjugate(found.beta);
  return found.tau;
}

template <class T> struct Bidiagonal {
  Complex<T> *a, *left, *right, *v, *row; // the reflections of columns and of rows: their factors tau
  int64_t m, n;

  void reduce() {
    for (int64_t k = 0; k < n; k++) {
      for (int64_t i = k; i < m; i++) v[i] = a[i * n + k];
      const ComplexReflection<T> found = reflect(v + k, m - k);
      left[k] = {found.tau, 0};
      reflect_rows(v + k, found.tau, a + k * n + k + 1, m - k, n - k - 1, n, row);
      a[k * n + k] = found.beta;
      for (int64_t i = k + 1; i < m; i++) a[i * n + k] = v[i];
      if (k + 1 < n) right[k] = {reflect_right(a, m, n, k, row), 0};
    }
  }
  void form_left(Complex<T> *q, int64_t width) {
    set_identity(q, m, width);
    for (int64_t k = n; k-- > 0;) {
      v[k] = {1, 0};
      for (int64_t i = k + 1; i < m; i++) v[i] = a[i * n + k];
      reflect_rows(v + k, left[k].re, q + k * width + k, m - k, width - k, width, row);
    }
  }
  void form_right(Complex<T> *p) {
    set_identity(p, n, n);
    for (int64_t k = n - 1; k-- > 0;) {
      const int64_t first = k + 1, count = n - first;
      v[first] = {1, 0};
      for (int64_t j = first + 1; j < n; j++) v[j] = conjugate(a[k * n + j]);
      reflect_rows(v + first, right[k].re, p + first * n + first, count, count, n, row);
    }
  }
};

// A = Q B Pᴴ for m ≥ n, where B is real and has the diagonal and the one above it. Stores the whole B, and Pᴴ.
template <class T>
void bidiagonalize(Complex<T> *work, T *b, Complex<T> *q, Complex<T> *ph, const ComplexBidiagonalBlock &block) {
  const int64_t m = block.rows, n = block.columns, width = block.width;
  Complex<T> *a = work, *left = a + m * n, *right = left + n, *v = right + n, *row = v + m;
  Bidiagonal<T> reduction = {a, left, right, v, row, m, n};
  reduction.reduce();
  std::fill_n(b, n * n, T(0));
  if (width > 0) reduction.form_left(q, width);
  if (width > 0) reduction.form_right(ph);
  Complex<T> phase = {1, 0}; // of a column of P; B = D₁ B′ D₂ᴴ with diagonal matrices of phases
  for (int64_t k = 0; k < n; k++) {
    const Complex<T> diagonal = a[k * n + k], turned = phase_of(diagonal) * phase;
    b[k * n + k] = absolute(diagonal);
    if (width > 0) scale_column(ph, n, n, k, phase);
    if (width > 0) scale_column(q, m, width, k, turned);
    if (k + 1 == n) break;
    const Complex<T> beyond = a[k * n + k + 1];
    b[k * n + k + 1] = absolute(beyond);
    phase = phase_of(turned * conjugate(phase_of(beyond)));
  }
  if (width == 0) return;
  transpose_in_place(ph, n);
  for (int64_t i = 0; i < n * n; i++) ph[i] = conjugate(ph[i]);
}

void complex_bidiagonal(const ComplexBidiagonalBlock &block, Operands operands) {
  with_real(block.dtype, [&](auto real) {
    using T = decltype(real);
    const int64_t batch = block.batch, m = block.rows, n = block.columns, width = block.width;
    const int64_t right = width > 0 ? n : 0;
    if (m < n || (width != 0 && width != n && width != m))
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected at least as many rows as columns, and no columns of Q, n or m");
    const Complex<T> *a = inputs<T>(operands, 0, batch, m, n);
    T *b = operands.results<T>(1, 0, matrices(batch, n, n));
    Complex<T> *q = results<T>(operands, 2, batch, m, width), *ph = results<T>(operands, 3, batch, n, right);
    if (matrices(batch, n, n).is_empty() && matrices(batch, m, width).is_empty()) return;
    const int64_t elements = scratch_product({2, m * n + 2 * n + m + std::max(m, n)});
    for_each_matrix<T>(batch, 8 * m * n * (n + width), elements, [&](int64_t at, T *scratch) {
      Complex<T> *work = reinterpret_cast<Complex<T> *>(scratch);
      std::copy_n(a + at * m * n, m * n, work);
      T *result = b + at * n * n;
      Complex<T> *left = q + at * m * width, *factor = ph + at * n * right;
      if (are_finite(scratch, 2 * m * n)) return bidiagonalize(work, result, left, factor, block);
      std::fill_n(result, n * n, std::numeric_limits<T>::quiet_NaN());
      set_identity(left, m, width);
      set_identity(factor, n, right);
    });
  });
}

ORCHARD_FUNCTION("complexTridiagonal", complex_tridiagonal, ComplexTridiagonalBlock, 4)
ORCHARD_FUNCTION("complexBidiagonal", complex_bidiagonal, ComplexBidiagonalBlock, 4)

} // namespace
