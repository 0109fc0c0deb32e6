#include "linalg.h"

#include "vectors.h"

#include <algorithm>
#include <cmath>

namespace orchard::ORCHARD_ISA {
namespace {

// Row by row: L[i, j] = (A[i, j] - Σ L[i, k] L[j, k] over k < j) / L[j, j], and on the diagonal its square root.
template <class T> int64_t cholesky(T *a, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    T *row = a + i * n;
    for (int64_t j = 0; j < i; j++) row[j] = (row[j] - dot(row, a + j * n, j)) / a[j * n + j];
    T square = row[i] - dot(row, row, i);
    if (!(square > 0)) {
      std::fill(row, a + n * n, T(0));
      return i + 1;
    }
    row[i] = std::sqrt(square);
    std::fill(row + i + 1, row + n, T(0));
  }
  return 0;
}

// Row by row: X[i] = (B[i] - Σ A[i, k] X[k] over the rows k that are known) / A[i, i].
template <class T> void solve_triangular(const TriangularSystem<T> &system) {
  const auto [a, b, n, columns, stride, upper, unit_diagonal] = system;
  for (int64_t step = 0; step < n; step++) {
    int64_t i = upper ? n - 1 - step : step;
    T *row = b + i * stride;
    for (int64_t known = 0; known < step; known++) {
      int64_t k = upper ? n - 1 - known : known;
      subtract_multiple(row, b + k * stride, a[i * n + k], columns);
    }
    if (unit_diagonal) continue;
    for (int64_t column = 0; column < columns; column++) row[column] /= a[i * n + i];
  }
}

template <class T> constexpr LinalgKernel<T> kernel = {cholesky<T>, solve_triangular<T>};

} // namespace

extern const LinalgKernels linalg_kernels = {kernel<double>, kernel<float>};

} // namespace orchard::ORCHARD_ISA
