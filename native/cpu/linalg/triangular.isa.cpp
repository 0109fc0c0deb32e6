#include "triangular.h"

#include "vectors.h"

namespace orchard::ORCHARD_ISA {
namespace {

// Row by row: X[i] = (B[i] - Σ A[i, k] X[k] over the rows k that are known) / A[i, i].
template <class T> void solve(const TriangularSystem<T> &system) {
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

} // namespace

extern const TriangularKernels triangular_kernels = {{solve<double>}, {solve<float>}};

} // namespace orchard::ORCHARD_ISA
