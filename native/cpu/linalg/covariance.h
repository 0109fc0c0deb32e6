// The two passes of a covariance matrix beside its product.
#pragma once

#include "matrices.h"

namespace orchard {

// Subtracts the mean of each of `rows` dense rows.
struct CenterRowsBlock {
  DTypeField dtype;
  Whole rows, columns, offset;
};

// Divides a dense square matrix by `divisor`; or with `is_correlation` each element by the roots of the diagonal
// elements of its row and its column, limited to [-1, 1].
struct FinishCovarianceBlock {
  DTypeField dtype;
  Whole size, offset;
  Real divisor;
  Flag is_correlation;
};

template <class T> struct CovarianceKernels {
  void (*center)(const T *x, T *out, int64_t rows, int64_t columns);
  void (*scale)(const T *row, T *out, int64_t count, double factor, const T *deviations);
};
using Covariances = OfReals<CovarianceKernels>;

} // namespace orchard

ORCHARD_ISA_TABLE(Covariances, covariances)
