// Vectors of adjacent elements: what a convolution does with a part of a line.
#pragma once

#include "../linalg/matrices.h"

namespace orchard {

template <class T> struct RunKernel {
  // to += factor · from
  void (*add_multiple)(T *to, const T *from, T factor, int64_t count);
  // to += from
  void (*add)(T *to, const T *from, int64_t count);
  // Σ x[i] y[i], in the same order on every instruction set.
  T (*dot)(const T *x, const T *y, int64_t count);
};

using RunKernels = OfReals<RunKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(RunKernels, run_kernels)
