// The two passes of a covariance matrix beside its product.
#pragma once

// Subtracts the mean of each of `rows` dense rows.
#include "../../.build/generated/center_rows_block.h"

// Divides a dense square matrix by `divisor`; or with `is_correlation` each element by the roots of the diagonal
// elements of its row and its column, limited to [-1, 1].
#include "../../.build/generated/finish_covariance_block.h"

#include "matrices.h"

namespace orchard {

template <class T> struct CovarianceKernels {
  void (*center)(const T *x, T *out, int64_t rows, int64_t columns);
  void (*scale)(const T *row, T *out, int64_t count, double factor, const T *deviations);
};
using Covariances = OfReals<CovarianceKernels>;

} // namespace orchard

ORCHARD_ISA_TABLE(Covariances, covariances)
