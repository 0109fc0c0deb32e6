// Row kernels of two activations that are not plain elementwise operations: the gradient of SwiGLU has two results, and
// dropout depends on each element's index.
#pragma once

#include "../../.build/generated/swiglu_gradient_block.h"
#include "../../.build/generated/dropout_block.h"

#include "../elementwise/loop.h"
#include "../random/philox.h"

namespace orchard {

// Elements whose random word is at most `last_dropped` become 0; others are multiplied by `scale`.
struct Dropout {
  PhiloxStart start;
  uint32_t last_dropped;
  double scale;
};

// Arrays are indexed by dtype; entries for non-float dtypes are null.
struct Activations {
  // gate_gradient = g·up·silu'(gate) and up_gradient = g·silu(gate), for `count` adjacent elements.
  void (*swiglu_gradient[dtype_count])(const void *g, const void *gate, const void *up, void *gate_gradient,
                                       void *up_gradient, int64_t count);
  // Computes elements begin … begin + count − 1; `begin` is a multiple of 4.
  void (*dropout[dtype_count])(const Dropout &dropout, const void *x, void *out, int64_t begin, int64_t count);
};

} // namespace orchard

ORCHARD_ISA_TABLE(Activations, activations)
