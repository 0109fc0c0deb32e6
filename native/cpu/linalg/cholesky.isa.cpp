#include "cholesky.h"

#include "vectors.h"

#include <algorithm>
#include <cmath>

namespace orchard::ORCHARD_ISA {
namespace {

// Row by row: L[i, j] = (A[i, j] - Σ L[i, k] L[j, k] over k < j) / L[j, j], and on the diagonal its square root.
template <class T> int64_t factorise(T *a, int64_t n) {
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

} // namespace

extern const CholeskyKernels cholesky_kernels = {{factorise<double>}, {factorise<float>}};

} // namespace orchard::ORCHARD_ISA
