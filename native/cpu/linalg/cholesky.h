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
  // Replaces A by L of A = L Lᵀ, reading the lower triangle. Returns the order of the first leading minor that is not
  // positive, from which on L is 0; or 0.
  int64_t (*factorise)(T *a, int64_t n);
  // The same of a group of matrices, `codes` getting what each returns; or U of A = Uᵀ U from the upper triangles. The
  // scratch has n * n vectors.
  void (*factorise_group)(LaneGroup<const T> from, LaneGroup<T> to, int32_t *codes, int64_t n, bool upper, T *scratch);
  int lanes;
};

using CholeskyKernels = OfReals<CholeskyKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(CholeskyKernels, cholesky_kernels)
