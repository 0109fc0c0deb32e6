// Local derivatives of reductions, which depend on an element x and its result y, and selection of the element at an
// index.
#pragma once

#include "../nest.h"

namespace orchard {

// tie: 1 where x = y, with NaN equal to itself, else 0. sign: the sign of x. quotient: x / y. power: sign(x) |x|^(p -
// 1) y^(1 - p). Instead of dividing by 0, the result is 0.
ORCHARD_NAMES(ReductionDerivative, tie, sign, quotient, power)

// The output is row-major. The nest has its axes, with the strides of both inputs.
struct ReductionDerivativeBlock {
  Name<ReductionDerivative> operation;
  Real parameter; // p of `power`
  DTypeField dtype;
  Whole offsets[3];
  NestBlock<2> nest;
};

struct SelectAtBlock {
  Whole size;  // length of the axis
  Whole inner; // distance between indices of the axis in the output, in elements
  DTypeField dtype;
  Whole offsets[3];
  NestBlock<2> nest;
};

// Kernels for elements [begin, end) of a nest of two operands; the output is row-major.
struct DerivativeKernels {
  void (*derivative)(ReductionDerivative, double parameter, const Nest<2> &, int64_t begin, int64_t end, const void *x,
                     const void *y, void *out);
  void (*select_at)(int64_t size, int64_t inner, const Nest<2> &, int64_t begin, int64_t end, const void *x,
                    const int64_t *indices, void *out);
};

struct ReductionDerivatives {
  DerivativeKernels kernels[4]; // float64, float32, float16, bfloat16
};

} // namespace orchard

ORCHARD_ISA_TABLE(ReductionDerivatives, reduction_derivatives)
