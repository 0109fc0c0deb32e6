// Softmax and log-softmax along an axis, and their gradients.
#pragma once

#include "../slice_batches.h"

namespace orchard {

// The gradients take the forward's result y as second operand: y (g - Σ g y) and g - eʸ Σ g.
ORCHARD_NAMES(Softmax, softmax, logSoftmax, softmaxGradient, logSoftmaxGradient)

constexpr bool is_gradient(Softmax operation) { return operation >= Softmax::softmaxGradient; }

struct SoftmaxBlock {
  Name<Softmax> operation;
  DTypeField dtype;
  SlicesBlock<3> slices;
};

// Slices that are worked on together at most, where they are adjacent in memory.
constexpr int64_t max_softmax_slices = 256;

// Of x (or g), y and out; `scratch` is two slices of the compute type where a batch is one slice.
struct SoftmaxBatch : SliceBatch {
  char *scratch;
};

// What the results of a slice depend on beside its elements: the largest element (not for gradients), and the sum over
// exp(x - largest), g y, or g.
struct SoftmaxState {
  double largest, sum;
};

// Whole slices; or of adjacent elements first states, which are merged, and then results.
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
