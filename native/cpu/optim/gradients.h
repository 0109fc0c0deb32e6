// Work on many gradients at once, a chunk of one of them at a time: sums of squares, and products with a factor.
#pragma once

#include "../dtypes.h"
#include "../isa.h"

#include <cstdint>

namespace orchard {

struct GradientKernels {
  // Σ g², in float64.
  double (*squares)(DType dtype, const char *gradient, int64_t count);
  // after = factor · before, rounded once.
  void (*scale)(DType dtype, double factor, const char *before, char *after, int64_t count);
};

} // namespace orchard

ORCHARD_ISA_TABLE(GradientKernels, gradient_kernels)
