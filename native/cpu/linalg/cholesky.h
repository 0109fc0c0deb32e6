#pragma once

#include "matrices.h"

namespace orchard {

struct CholeskyBlock {
  DTypeField dtype;
  Whole batch;
  Whole size;
};

template <class T> struct CholeskyKernel {
  // Replaces A by L of A = L Lᵀ, reading the lower triangle. Returns the order of the first leading minor that is not
  // positive, from which on L is 0; or 0.
  int64_t (*factorise)(T *a, int64_t n);
};

using CholeskyKernels = OfReals<CholeskyKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(CholeskyKernels, cholesky_kernels)
