// Processes many gradients in one call, in chunks: sums of squares, and products with a factor.
#pragma once

#include "../../.build/generated/gradient_scale_block.h"

// Dense gradients of a float dtype, each with its size and offset. Only the first `gradients` operands are read.
// - gradients: number of gradients
// - chunk: elements of a gradient in one sum of squares
#include "../../.build/generated/gradient_norms_block.h"

#include "../block.h"

namespace orchard {

constexpr int max_gradients = std::extent_v<decltype(GradientNormsBlock::sizes)>;

struct GradientKernels {
  // Returns Σ g² in float64.
  double (*squares)(DType dtype, const char *gradient, int64_t count);
  // after = factor · before, rounded once.
  void (*scale)(DType dtype, double factor, const char *before, char *after, int64_t count);
};

} // namespace orchard

ORCHARD_ISA_TABLE(GradientKernels, gradient_kernels)
