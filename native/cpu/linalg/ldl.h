// Factorization of symmetric matrices, A = P L D Lᵀ Pᵀ with blocks of 1 x 1 and 2 x 2 in D, and solution of their
// systems.
#pragma once

#include "../../.build/generated/ldl_factor_block.h"
#include "../../.build/generated/ldl_solve_block.h"

#include "matrices.h"

namespace orchard {

template <class T> struct LdlKernel {
  // Replaces the lower triangle of A by L and D, and computes pivots, as LAPACK's sytf2 does. `work` has 2 n elements.
  // Returns the first 1 x 1 block that is 0, counted from 1, or 0 if there is none.
  int64_t (*factorize)(T *a, int64_t n, int32_t *pivots, T *work);
  // Replaces B by X of A X = B. Pivots may be any numbers: one outside the matrix swaps nothing.
  void (*solve)(const T *ld, const int32_t *pivots, T *b, int64_t n, int64_t columns);
};

using LdlKernels = OfReals<LdlKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(LdlKernels, ldl_kernels)
