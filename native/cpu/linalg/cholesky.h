#pragma once

#include "matrices.h"

namespace orchard {

struct CholeskyBlock {
  DTypeField dtype;
  Whole batch;
  Whole size;
  Flag upper;
};

template <class T> struct CholeskyKernel {
  // Replaces the upper triangle of A by that of U of A = Uᵀ U, up to the first leading minor that is not positive,
  // whose order is returned; or 0. Rows are `stride` apart.
  int64_t (*factorise)(T *a, int64_t n, int64_t stride);
  // L of A = L Lᵀ from the lower triangles of a group of matrices, or U from the upper ones; 0 from a minor on that is
  // not positive, whose order `codes` gets. The scratch has n * n vectors.
  void (*factorise_group)(LaneGroup<const T> from, LaneGroup<T> to, int32_t *codes, int64_t n, bool upper, T *scratch);
  int lanes;
};

using CholeskyKernels = OfReals<CholeskyKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(CholeskyKernels, cholesky_kernels)
