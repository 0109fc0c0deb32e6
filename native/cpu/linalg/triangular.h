#pragma once

#include "matrices.h"

namespace orchard {

struct SolveTriangularBlock {
  DTypeField dtype;
  Whole batch;
  Whole rows;
  Whole columns;
  Flag upper;
  Flag unit_diagonal;
};

// X of A X = B for a triangular A of n x n, which replaces B: `columns` of its columns, whose rows are `stride` apart.
template <class T> struct TriangularSystem {
  const T *a;
  T *b;
  int64_t n, columns, stride;
  bool upper, unit_diagonal;
};

template <class T> struct TriangularKernel {
  void (*solve)(const TriangularSystem<T> &system);
};

using TriangularKernels = OfReals<TriangularKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(TriangularKernels, triangular_kernels)
