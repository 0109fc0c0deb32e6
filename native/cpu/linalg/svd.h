#pragma once

#include "../../.build/generated/svd_block.h"

#include "matrices.h"

#include <limits>

namespace orchard {

// The outcome for a matrix. With `svd_left`, a fast kernel left the matrix to the accurate one.
enum SvdInfo : int32_t { svd_left = -1, svd_done = 0, svd_not_finite = 1, svd_not_converged = 2 };

// U, Σ and Vᵀ of a matrix of rows x columns. U and Vᵀ are null if only singular values are computed, and square if
// `full`.
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

// Contiguous matrices and their results. U and Vᵀ are null if only singular values are computed.
template <class T> struct SvdBatch {
  const T *a;
  T *u, *s, *vh;
  int32_t *info;
  int64_t count, rows, columns;
  bool full;

  int64_t small() const { return std::min(rows, columns); }
  int64_t large() const { return std::max(rows, columns); }
  int64_t left() const { return full ? rows : small(); }
  int64_t right() const { return full ? columns : small(); }

  SvdProblem<T> problem(int64_t at, double *scratch) const {
    return {a + at * rows * columns,
            u ? u + at * rows * left() : nullptr,
            s + at * small(),
            vh ? vh + at * right() * columns : nullptr,
            rows,
            columns,
            full,
            scratch};
  }

  // Stores the outcome. If the matrix failed, its results are set to NaN.
  void finish(int64_t at, SvdInfo found) const {
    info[at] = found;
    if (found == svd_done) return;
    const SvdProblem<T> failed = problem(at, nullptr);
    const T nan = std::numeric_limits<T>::quiet_NaN();
    std::fill_n(failed.s, small(), nan);
    if (!failed.has_vectors()) return;
    std::fill_n(failed.u, rows * left(), nan);
    std::fill_n(failed.vh, right() * columns, nan);
  }
};

// Returns the size of the scratch memory of a factorization in elements.
inline int64_t svd_scratch(int64_t rows, int64_t columns) {
  const int64_t small = std::min(rows, columns), large = std::max(rows, columns);
  return small * large + 3 * small * small + 6 * small + large;
}

// Returns the size of the scratch memory of a bidiagonal factorization that computes `count` vectors of the long side.
inline int64_t svd_bidiagonal_scratch(int64_t rows, int64_t columns, int64_t count) {
  constexpr int64_t line = 8;
  const int64_t small = std::min(rows, columns), large = std::max(rows, columns);
  const int64_t padded_small = (small + line - 1) / line * line, padded_large = (large + line - 1) / line * line;
  return (2 * small + count) * padded_large + 2 * small * padded_small + 9 * small;
}

// Rotates rows, which keeps the digits of small singular values.
template <class T> struct SvdKernel {
  SvdInfo (*factorize)(const SvdProblem<T> &problem);
};

using SvdKernels = OfReals<SvdKernel>;

// Reduces the matrix to bidiagonal form. Returns `svd_left` if small singular values may lose digits.
template <class T> struct SvdBidiagonalKernel {
  SvdInfo (*factorize)(const SvdProblem<T> &problem);
};

using SvdBidiagonalKernels = OfReals<SvdBidiagonalKernel>;

template <class T> struct SvdLanesKernel {
  // Factors `count` square matrices of the batch from `first` on. Leaves out matrices that are not finite, or whose
  // rows have norms too small for the precision of T.
  void (*factorize)(const SvdBatch<T> &batch, int64_t first, int64_t count, T *scratch);
  int64_t lanes;
};

using SvdLanesKernels = OfReals<SvdLanesKernel>;

// Returns the size of the scratch memory of such a group in vectors.
inline int64_t svd_lanes_scratch(int64_t n) { return 4 * n * n + 2 * n; }

} // namespace orchard

ORCHARD_ISA_TABLE(SvdKernels, svd_kernels)
ORCHARD_ISA_TABLE(SvdBidiagonalKernels, svd_bidiagonal_kernels)
ORCHARD_ISA_TABLE(SvdLanesKernels, svd_lanes_kernels)
