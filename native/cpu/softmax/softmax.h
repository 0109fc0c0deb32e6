// Softmax and log-softmax along an axis, and their gradients.
#pragma once

#include "../slice_batches.h"

namespace orchard {

// The second operand of the gradients is the forward result y: y (g - Σ g y) and g - eʸ Σ g.
ORCHARD_NAMES(Softmax, softmax, logSoftmax, softmaxGradient, logSoftmaxGradient)

constexpr bool is_gradient(Softmax operation) { return operation >= Softmax::softmaxGradient; }

struct SoftmaxBlock {
  Name<Softmax> operation;
  DTypeField dtype;
  SlicesBlock<3> slices;
};

// The most slices computed together, if they are adjacent in memory.
constexpr int64_t max_softmax_slices = 256;

// Slices of x (or g), y and out; `scratch` has room for two slices of the compute type if a batch is one slice.
struct SoftmaxBatch : SliceBatch {
  char *scratch;
};

// The inputs of a slice's results apart from its elements: the largest element (not for gradients), and the sum of
// exp(x - largest), g y, or g.
struct SoftmaxState {
  double largest, sum;
};

// Whole slices; or, for adjacent elements, states, which are merged, and then results.
struct SoftmaxKernel {
  void (*slices)(Softmax, const SoftmaxBatch &);
  SoftmaxState (*state)(Softmax, const char *x, const char *y, int64_t count);
  SoftmaxState (*merge)(Softmax, SoftmaxState, SoftmaxState);
  void (*results)(Softmax, const char *x, const char *y, char *out, int64_t count, SoftmaxState, bool is_streamed);
};

struct Softmaxes {
  SoftmaxKernel kernels[4]; // float64, float32, float16, bfloat16
};

} // namespace orchard

ORCHARD_ISA_TABLE(Softmaxes, softmaxes)
