#pragma once

#include "matrices.h"

namespace orchard {

struct SvdBlock {
  DTypeField dtype;
  Whole batch;
  Whole rows;
  Whole columns;
  Flag vectors;
  Flag full;
};

// What a matrix is found to be.
enum SvdInfo : int32_t { svd_done = 0, svd_not_finite = 1, svd_not_converged = 2 };

// U, Σ and Vᵀ of a matrix of rows x columns. U and Vᵀ are null where singular values are all that is computed; they are
// square where `full`.
template <class T> struct SvdProblem {
  const T *a;
  T *u, *s, *vh;
  int64_t rows, columns;
  bool full;
  double *scratch;

  bool has_vectors() const { return u != nullptr; }
  bool is_tall() const { return rows >= columns; }
  int64_t small() const { return std::min(rows, columns); }
  int64_t large() const { return std::max(rows, columns); }
};

// Numbers that a matrix takes for the time of its factorisation.
inline int64_t svd_scratch(int64_t rows, int64_t columns) {
  const int64_t small = std::min(rows, columns), large = std::max(rows, columns);
  return small * large + 3 * small * small + 6 * small + large;
}

template <class T> struct SvdKernel {
  SvdInfo (*factorise)(const SvdProblem<T> &problem);
};

using SvdKernels = OfReals<SvdKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(SvdKernels, svd_kernels)
