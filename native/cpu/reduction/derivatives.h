// Local derivatives of reductions, which depend on an element x and its result y, and selection of the element at an
// index.
#pragma once

#include "../../.build/generated/reduction_derivative_block.h"
#include "../../.build/generated/select_at_block.h"
#include "../nest.h"

namespace orchard {

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
