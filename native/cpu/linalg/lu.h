// LU factors with partial pivoting, and solutions of their systems.
#pragma once

#include "matrices.h"

namespace orchard {

struct LuFactorBlock {
  DTypeField dtype;
  Whole batch;
  Whole rows;
  Whole columns;
  Flag pivot;
};

struct LuSolveBlock {
  DTypeField dtype;
  Whole batch;
  Whole size;
  Whole columns;
  Flag adjoint;
};

struct SolveBlock {
  DTypeField dtype;
  Whole batch;
  Whole size;
  Whole columns;
  Flag inverse;
  Flag keeps_factor;
};

struct LuPermutationBlock {
  Whole batch;
  Whole rows;
  Whole pivots;
  Flag inverse;
};

// Rows and columns of an elimination are padded in memory to multiples of this.
constexpr int64_t lu_unit = 16;
constexpr int64_t padded(int64_t count) { return (count + lu_unit - 1) / lu_unit * lu_unit; }

// Rows whose first `columns` columns are eliminated, and whose other columns are updated: right sides, if the matrix is
// square. There are padded(rows) rows of `width` elements, a multiple of lu_unit; the padding is 0. Up to 64 rows may
// be read from another place.
template <class T> struct Elimination {
  const T *from;
  int64_t from_width;
  T *a;
  int64_t rows, columns, width;
  int32_t *pivots; // min(rows, columns): the row that each is swapped with, from 0
  int32_t *info;   // the first pivot that is 0, counted from 1; or 0
  bool pivot;
  T *scratch; // padded(rows) * lu_unit, for more than 64 rows
};

// The most matrices that are eliminated at a time.
constexpr int64_t lu_together = 2;

// T X = B for a triangular T of n x n; X replaces B.
template <class T> struct Substitution {
  const T *a;
  int64_t row_stride, column_stride;
  T *b;
  int64_t n, columns, stride; // stride: between rows of B
  bool upper, unit_diagonal;
};

// As many small matrices as a vector has lanes, or fewer. Null pointers are absent arrays; if `b` of a system is null,
// it is the identity.
template <class T> struct LuLanes {
  int64_t count;
  int64_t rows, columns, right; // right: columns of B and X, 0 if there are none
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
