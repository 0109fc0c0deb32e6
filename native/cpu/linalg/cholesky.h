#pragma once

#include "../../.build/generated/cholesky_block.h"

#include "matrices.h"
#include "tuning.h"

namespace orchard {

using tuning::cholesky::strip_columns;

// A panel of the Cholesky factor of a row-major n x n matrix A: `depth` rows of U with A = Uᵀ U, from row `first` on,
// or as many columns of L = Uᵀ. `from` is A minus the products of the previous panels.
template <class T> struct CholeskyPanel {
  const T *from;
  T *to;
  int64_t n, first, depth;
  bool upper;
  T *packed, *inverse; // padded_depth() rows of all strips, and the padded_depth() reciprocals of the diagonal

  int64_t padded_depth() const { return (depth + strip_columns - 1) / strip_columns * strip_columns; }
};

template <class T> struct CholeskyKernel {
  // Factors the diagonal block. Returns the order of its first leading minor that is not positive, or 0. The other
  // functions may be called only if it is 0.
  int64_t (*factorize)(const CholeskyPanel<T> &panel);
  // Solves for the strips [begin, end) to the right of the diagonal block (below it for L), counted from the block's
  // first strip.
  void (*solve)(const CholeskyPanel<T> &panel, int64_t begin, int64_t end);
  // Subtracts the panel's products from squares [begin, end) of the rest of the matrix. A square is a pair of strips:
  // one of the triangle's rows, one of its columns.
  void (*subtract)(const CholeskyPanel<T> &panel, int64_t begin, int64_t end);
  // Computes L of A = L Lᵀ from the lower triangles of a group of matrices, or U from the upper ones. From the first
  // leading minor that is not positive, the factor is 0, and `codes` receives the order of that minor. The scratch has
  // n * n vectors.
  void (*factorize_group)(LaneGroup<const T> from, LaneGroup<T> to, int32_t *codes, int64_t n, bool upper, T *scratch);
  int lanes;
};

using CholeskyKernels = OfReals<CholeskyKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(CholeskyKernels, cholesky_kernels)
