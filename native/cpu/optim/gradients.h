// Processes many gradients in one call, in chunks: sums of squares, and products with a factor.
#pragma once

#include "../block.h"

namespace orchard {

constexpr int max_gradients = 14;

// Dense gradients of a float dtype, each with its size and offset. Only the first `gradients` operands are read.
struct GradientNormsBlock {
  DTypeField dtype;
  Whole gradients; // number of gradients
  Whole chunk;     // elements of a gradient in one sum of squares
  Whole sizes[max_gradients], offsets[max_gradients];
  Whole norms_offset;
};

struct GradientScaleBlock {
  DTypeField dtype;
  Whole gradients, chunk;
  Whole sizes[max_gradients], offsets[max_gradients];
  Whole factor_offset;
  Whole result_offsets[max_gradients];
};

struct GradientKernels {
  // Returns Σ g² in float64.
  double (*squares)(DType dtype, const char *gradient, int64_t count);
  // after = factor · before, rounded once.
  void (*scale)(DType dtype, double factor, const char *before, char *after, int64_t count);
};

} // namespace orchard

ORCHARD_ISA_TABLE(GradientKernels, gradient_kernels)
