// The inverse of a symmetric positive definite matrix, from its Cholesky factor.
#pragma once

// Factors L of A = L Lᵀ, each row-major, or column-major with `transposed`. The other triangle is not read.
#include "../../.build/generated/cholesky_inverse_block.h"

#include "matrices.h"

namespace orchard {

// Writes the inverse of L Lᵀ, where element (i, j) of L is l[i * row + j * column]. The scratch has
// scratch_rows(n) rows of n elements.
template <class T> struct CholeskyInverseKernel {
  void (*invert)(const T *l, int64_t row, int64_t column, T *inverse, int64_t n, T *scratch);
};

// Rows of this many of the factor's inverse are multiplied at a time.
constexpr int64_t rows_at_once = 4;

// Whole groups of rows, and a row of zeros.
inline int64_t scratch_rows(int64_t n) { return (n / rows_at_once + 1) * rows_at_once; }

using CholeskyInverseKernels = OfReals<CholeskyInverseKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(CholeskyInverseKernels, cholesky_inverse_kernels)
