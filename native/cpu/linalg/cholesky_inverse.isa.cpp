#include "cholesky_inverse.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {
namespace {

// Four rows, and a factor for each.
template <class T> struct Rows {
  const T *row[rows_at_once];
  T factor[rows_at_once];
};

// sums[0 … count) += the rows, each times its factor. The order of the additions is the same on every instruction set.
template <class T> inline void add_rows(const Rows<T> &rows, T *__restrict sums, int64_t count) {
  static_assert(rows_at_once == 4);
  const T *a = rows.row[0], *b = rows.row[1], *c = rows.row[2], *d = rows.row[3];
  const T *f = rows.factor;
  const T fa = f[0], fb = f[1], fc = f[2], fd = f[3];
  for (int64_t j = 0; j < count; j++) sums[j] += (fa * a[j] + fb * b[j]) + (fc * c[j] + fd * d[j]);
}

// Writes M = L⁻¹, with zeros above the diagonal and in the rows from n on (at least one). L M = I gives row i of M from
// the rows before it.
template <class T> void invert_factor(const T *l, int64_t row, int64_t column, T *m, int64_t n, int64_t stride) {
  std::fill_n(m, scratch_rows(n) * stride, T(0));
  for (int64_t i = 0; i < n; i++) {
    T *to = m + i * stride;
    for (int64_t k = 0; k < i; k += rows_at_once) {
      Rows<T> rows;
      for (int64_t r = 0; r < rows_at_once; r++) {
        const bool is_before = k + r < i;
        rows.row[r] = m + (is_before ? k + r : n) * stride;
        rows.factor[r] = is_before ? l[i * row + (k + r) * column] : T(0);
      }
      add_rows(rows, to, std::min(i, k + rows_at_once));
    }
    const T diagonal = l[i * (row + column)];
    for (int64_t j = 0; j < i; j++) to[j] = -to[j] / diagonal;
    to[i] = T(1) / diagonal;
  }
}

// A⁻¹ = Mᵀ M. Its lower triangle is summed over the rows of M; the upper one is its mirror image.
template <class T> void invert(const T *l, int64_t row, int64_t column, T *inverse, int64_t n, T *m) {
  const int64_t stride = n;
  invert_factor(l, row, column, m, n, stride);
  std::fill_n(inverse, n * n, T(0));
  for (int64_t k = 0; k < n; k += rows_at_once)
    for (int64_t i = 0; i < std::min(n, k + rows_at_once); i++) {
      Rows<T> rows;
      for (int64_t r = 0; r < rows_at_once; r++) {
        rows.row[r] = m + (k + r) * stride;
        rows.factor[r] = rows.row[r][i];
      }
      add_rows(rows, inverse + i * n, i + 1);
    }
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < i; j++) inverse[j * n + i] = inverse[i * n + j];
}

template <class T> constexpr CholeskyInverseKernel<T> kernel = {invert<T>};

} // namespace

extern const CholeskyInverseKernels cholesky_inverse_kernels = {kernel<double>, kernel<float>};

} // namespace orchard::ORCHARD_ISA
