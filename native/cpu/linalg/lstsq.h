#pragma once

#include "matrices.h"

namespace orchard {

// Whether columns are pivoted, so that the rank is found: LAPACK's gelsy; else it is taken to be full, as by gels.
struct LstsqBlock {
  DTypeField dtype;
  Whole batch;
  Whole rows;
  Whole columns;
  Whole width;
  Flag is_pivoted;
  Real rcond;
};

// A X = B for an A of `rows` x `columns` of no more rows than columns, both row-major without gaps; they are
// overwritten. X has `columns` rows of `width`.
template <class T> struct LeastSquaresSystem {
  T *a, *b, *x;
  int64_t rows, columns, width;
  // In place of A, its upper triangle.
  bool is_upper, is_pivoted;
  double rcond;
};

struct Rank {
  int64_t rank;
  // The first diagonal element that is 0, from 1, of a matrix that is taken to have full rank; else 0.
  int64_t zero;
};

template <class T> struct LstsqKernel {
  // The solution of least norm. Work: `lstsq_work`.
  Rank (*solve)(const LeastSquaresSystem<T> &system, T *work);
};

inline int64_t lstsq_work(int64_t rows, int64_t columns, int64_t width) {
  return rows * columns + 4 * rows + 5 * columns + width;
}

using LstsqKernels = OfReals<LstsqKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(LstsqKernels, lstsq_kernels)
