#pragma once

// Triangular matrices A of rows x rows and right-hand sides B of rows x columns. Each is stored row-major and
// contiguous, or as the transpose of such a matrix. X has the layout of B.
#include "../../.build/generated/solve_triangular_block.h"

#include "matrices.h"

namespace orchard {

// A X = B for a triangular n x n matrix A; X replaces B. Element (i, j) of A is a[i * a_row + j * a_column]. The
// `columns` elements of a row of B are contiguous, and rows are `stride` apart.
template <class T> struct TriangularSystem {
  const T *a;
  int64_t a_row, a_column;
  T *b;
  int64_t n, columns, stride;
  bool upper, unit_diagonal;
};

// The shape of each system of a batch, as given in the block.
struct TriangularShape {
  int64_t n, columns;
  bool upper, unit_diagonal, transposed_a, transposed_b;
};

template <class T> struct TriangularKernel {
  void (*solve)(const TriangularSystem<T> &system);
  // Solves a group of systems. The scratch has n * (n + columns) vectors.
  void (*solve_group)(LaneGroup<const T> a, LaneGroup<const T> b, LaneGroup<T> x, const TriangularShape &shape,
                      T *scratch);
  int lanes;
};

using TriangularKernels = OfReals<TriangularKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(TriangularKernels, triangular_kernels)
