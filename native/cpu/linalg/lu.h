// LU factorization with partial pivoting, and solution of systems.
#pragma once

#include "../../.build/generated/lu_factor_block.h"
#include "../../.build/generated/lu_solve_block.h"
#include "../../.build/generated/solve_block.h"
#include "../../.build/generated/lu_permutation_block.h"

#include "matrices.h"

namespace orchard {

// Rows and columns of an elimination are padded in memory to multiples of this number.
constexpr int64_t lu_unit = 16;
constexpr int64_t padded(int64_t count) { return (count + lu_unit - 1) / lu_unit * lu_unit; }

// A matrix whose first `columns` columns are eliminated, while its other columns are updated: for a square matrix, they
// are right-hand sides. It has padded(rows) rows of `width` elements, a multiple of lu_unit; the padding is 0. If there
// are at most 64 rows, they may be read from other memory.
template <class T> struct Elimination {
  const T *from;
  int64_t from_width;
  T *a;
  int64_t rows, columns, width;
  int32_t *pivots; // min(rows, columns) pivots: the row that each row is swapped with, counted from 0
  int32_t *info;   // the first pivot that is 0, counted from 1; or 0
  bool pivot;
  T *scratch; // padded(rows) * lu_unit elements, needed for more than 64 rows
};

// The largest number of matrices that are eliminated at once.
constexpr int64_t lu_together = 2;

// T X = B for a triangular n x n matrix T; X replaces B.
template <class T> struct Substitution {
  const T *a;
  int64_t row_stride, column_stride;
  T *b;
  int64_t n, columns, stride; // stride: the distance between rows of B
  bool upper, unit_diagonal;
};

// Small matrices, at most as many as a vector has lanes. Null pointers stand for absent arrays; if `b` of a system is
// null, B is the identity matrix.
template <class T> struct LuLanes {
  int64_t count;
  int64_t rows, columns, right; // right: the number of columns of B and X, or 0
  bool pivot;
  const T *a, *b;
  T *lu, *x;
  int32_t *pivots, *info;
  T *work; // (columns + right) * rows * vector_lanes
};

template <class T> struct LuKernel {
  int64_t vector_lanes;
  // Eliminates up to lu_together matrices of the same sizes.
  void (*eliminate)(const Elimination<T> *all, int64_t count);
  void (*substitute)(const Substitution<T> &system);
  void (*lanes)(const LuLanes<T> &group);
};

using LuKernels = OfReals<LuKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(LuKernels, lu_kernels)
