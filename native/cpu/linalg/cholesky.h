#pragma once

#include "matrices.h"

namespace orchard {

struct CholeskyBlock {
  DTypeField dtype;
  Whole batch;
  Whole size;
  Flag upper;
};

// Columns of a strip of a panel.
constexpr int64_t strip_columns = 32;

// `depth` rows of the factor U of a row-major matrix A = Uᵀ U of n x n, from row `first` on, or as many columns of
// L = Uᵀ: rows of another panel follow. `from` is A, less the products of the panels before.
template <class T> struct CholeskyPanel {
  const T *from;
  T *to;
  int64_t n, first, depth;
  bool upper;
  T *packed, *inverse; // of the whole matrix's strips, and of the diagonal: padded_depth() each

  int64_t padded_depth() const { return (depth + strip_columns - 1) / strip_columns * strip_columns; }
};

template <class T> struct CholeskyKernel {
  // The block on the diagonal. Returns the order of its first leading minor that is not positive, or 0; nothing else is
  // called then.
  int64_t (*factorise)(const CholeskyPanel<T> &panel);
  // What is right of it (below, of L), strip by strip; they count from the block's first one on.
  void (*solve)(const CholeskyPanel<T> &panel, int64_t begin, int64_t end);
  // Subtracts products of the panel from what remains, in squares: the strips of a triangle's rows and columns.
  void (*subtract)(const CholeskyPanel<T> &panel, int64_t begin, int64_t end);
  // L of A = L Lᵀ from the lower triangles of a group of matrices, or U from the upper ones; 0 from a minor on that is
  // not positive, whose order `codes` gets. The scratch has n * n vectors.
  void (*factorise_group)(LaneGroup<const T> from, LaneGroup<T> to, int32_t *codes, int64_t n, bool upper, T *scratch);
  int lanes;
};

using CholeskyKernels = OfReals<CholeskyKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(CholeskyKernels, cholesky_kernels)
