// Eigenvalues and eigenvectors of symmetric matrices: Householder's reduction to a tridiagonal matrix, followed by the
// implicit QL algorithm. A matrix is first scaled by a power of two, so that no square of its elements overflows.
//
// Source: G. Golub and C. Van Loan, "Matrix Computations", 2013, sections 8.3.1 and 8.3.3.
#pragma once

#include "../../.build/generated/eigh_block.h"

#include "matrices.h"

#include <limits>

namespace orchard {

// Contiguous symmetric n × n matrices, of which one triangle is read, and pointers to their results.
template <class T> struct EighBatch {
  const T *a;
  T *values;
  int32_t *info;
  T *vectors; // null if eigenvectors are not computed
  int64_t n;
  bool upper;

  EighBatch at(int64_t matrix) const {
    return {
        a + matrix * n * n, values + matrix * n, info + matrix, vectors ? vectors + matrix * n * n : nullptr, n, upper};
  }
};

// A matrix that is reduced to tridiagonal form: Qᵀ A Q, with Q = H₀ H₁ … and Hₖ = 1 − τₖ vₖ vₖᵀ.
template <class T> struct Tridiagonal {
  int64_t n;
  T *a;                // n × n, both triangles; vₖ replaces row k from element k + 1 on
  T *diagonal, *below; // n each; below[k] = A[k + 1, k]
  T *tau;              // n
  T *product;          // n: A vₖ
  T *update;           // n: wₖ of A − vₖ wₖᵀ − wₖ vₖᵀ
};

// Rotations of adjacent columns, in the order in which they are applied. A sweep rotates pairs of columns from (m − 1,
// m) down to (l, l + 1).
template <class T> struct Rotations {
  T *pairs;  // the cosine and the sine of each rotation
  T *sweeps; // l and m of each sweep, stored as T
  int64_t capacity, sweep_capacity;
  int64_t count = 0, sweep_count = 0;
};

enum class Progress { done, full, failed };

struct QlPosition {
  int64_t l = 0, iterations = 0;
};

// Kernels for one matrix. Eigenvectors are computed in blocks of rows, one row per lane: block b has n × rows_of_block
// numbers, and the elements of a column are contiguous.
template <class T> struct EighKernel {
  int64_t rows_of_block;
  // Return the first row with an element that is not finite, counted from 1. If there is none, they load the matrix
  // divided by `scale` and return 0. `load` fills both triangles from the one that is read; `load_triangle` fills only
  // that one.
  int64_t (*load)(const EighBatch<T> &matrix, T *a, T &scale);
  int64_t (*load_triangle)(const EighBatch<T> &matrix, T *a, T &scale);
  // A step of the reduction: `reflect`, then `update` for the rows below k, divided into any ranges, then `finish`.
  void (*reflect)(const Tridiagonal<T> &t, int64_t k);
  void (*update)(const Tridiagonal<T> &t, int64_t k, int64_t begin, int64_t end);
  void (*finish)(const Tridiagonal<T> &t, int64_t k);
  // Iterates until the tridiagonal matrix is diagonal or `rotations` is full. `rotations` may be null.
  Progress (*iterate)(const Tridiagonal<T> &t, QlPosition &position, Rotations<T> *rotations);
  // `accumulate` computes a block of rows of Q, of which `row` is the first; `rotate` applies rotations to such a
  // block.
  void (*accumulate)(const Tridiagonal<T> &t, int64_t row, T *block);
  void (*rotate)(const Rotations<T> &rotations, T *block);
};

using EighKernels = OfReals<EighKernel>;

// Kernels for matrices of at most `tuning::eigh::lanes_size` rows, one matrix per vector lane.
template <class T> struct EighLanesKernel {
  int64_t lanes;
  // Returns the size of the scratch memory in elements.
  int64_t (*elements)(int64_t n);
  // Decomposes `count` matrices, at most as many as a vector has lanes.
  void (*decompose)(const EighBatch<T> &first, int64_t count, T *memory);
};

using EighLanesKernels = OfReals<EighLanesKernel>;

// Sets the results of a failed matrix to NaN.
template <class T> void fail_matrix(const EighBatch<T> &matrix, int64_t code) {
  constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  *matrix.info = static_cast<int32_t>(code);
  std::fill_n(matrix.values, matrix.n, nan);
  if (matrix.vectors) std::fill_n(matrix.vectors, matrix.n * matrix.n, nan);
}

} // namespace orchard

ORCHARD_ISA_TABLE(EighKernels, eigh_kernels)
ORCHARD_ISA_TABLE(EighLanesKernels, eigh_lanes_kernels)
