#pragma once

// If `is_pivoted`, columns are pivoted and the rank is determined, as LAPACK's gelsy does. Otherwise full rank is
// assumed, as in gels.
#include "../../.build/generated/lstsq_block.h"

#include "matrices.h"

namespace orchard {

// A X = B, where A is `rows` x `columns` and has no more rows than columns. A and B are row-major and contiguous, and
// are overwritten. X has `columns` rows of `width` elements.
template <class T> struct LeastSquaresSystem {
  T *a, *b, *x;
  int64_t rows, columns, width;
  // is_upper: `a` holds only an upper triangle
  bool is_upper, is_pivoted;
  double rcond;
};

struct Rank {
  int64_t rank;
  // The first diagonal element that is 0, counted from 1, if full rank is assumed; 0 if there is none.
  int64_t zero;
};

template <class T> struct LstsqKernel {
  // Computes the minimum-norm solution. The size of `work` is `lstsq_work`.
  Rank (*solve)(const LeastSquaresSystem<T> &system, T *work);
};

inline int64_t lstsq_work(int64_t rows, int64_t columns, int64_t width) {
  return rows * columns + 4 * rows + 5 * columns + width;
}

using LstsqKernels = OfReals<LstsqKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(LstsqKernels, lstsq_kernels)
