// LU factors with partial pivoting, and systems that they solve.
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

// Rows on which the first `columns` columns are eliminated and the others changed along. They are `width` elements
// apart, whole vectors of 64 bytes, and begin at such.
template <class T> struct Elimination {
  T *a;
  int64_t rows, columns, width;
  int32_t *pivots; // of min(rows, columns): with which row each is swapped, from 0
  bool pivot;
};

// X of T X = B for a triangular T of n x n, which replaces B.
template <class T> struct Substitution {
  const T *a;
  int64_t row_stride, column_stride;
  T *b;
  int64_t n, columns, stride; // stride: between rows of B
  bool upper, unit_diagonal;
};

// As many small matrices as a vector has lanes, or fewer. What is null is not there; without `b` of a system it is the
// identity.
template <class T> struct LuLanes {
  int64_t count;
  int64_t rows, columns, right; // right: columns of B and X, 0 where only factors are wanted
  bool pivot;
  const T *a, *b;
  T *lu, *x;
  int32_t *pivots, *info;
  T *work; // (columns + right) * rows * vector_lanes
};

template <class T> struct LuKernel {
  int64_t vector_lanes;
  // Returns the first pivot that is 0, counted from 1; or 0.
  int64_t (*eliminate)(const Elimination<T> &own);
  void (*substitute)(const Substitution<T> &own);
  void (*lanes)(const LuLanes<T> &own);
};

using LuKernels = OfReals<LuKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(LuKernels, lu_kernels)
