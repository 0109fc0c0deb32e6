// Softmax and log-softmax along an axis, and their gradients.
#pragma once

#include "../../.build/generated/softmax_block.h"

// The second operand of the gradients is the result y of the forward pass. They are y (g - Σ g y), and g - eʸ Σ g for
// log-softmax.
#include "../../.build/generated/softmax.h"

#include "../short_slices.h"
#include "../slice_batches.h"
#include "tuning.h"

namespace orchard {

using tuning::softmax::max_softmax_slices;

constexpr bool is_gradient(Softmax operation) { return operation >= Softmax::softmaxGradient; }

// Slices of x (or g), y and out. If a batch is one slice, `scratch` has room for two slices of the compute type.
struct SoftmaxBatch : SliceBatch {
  char *scratch;
};

// The values besides its elements on which a slice's results depend: the largest element (not for gradients), and the
// sum of exp(x - largest), g y, or g.
struct SoftmaxState {
  double largest, sum;
};

// `slices` computes whole slices. For adjacent elements there are also functions that compute the states of parts,
// merge them, and compute results from the merged state.
// A block of short slices of x (or g), y and out.
struct ShortSoftmax {
  const char *x, *second;
  char *out;
  ShortSlices slices[3];
  bool is_streamed;
};

struct SoftmaxKernel {
  void (*slices)(Softmax, const SoftmaxBatch &);
  SoftmaxState (*state)(Softmax, const char *x, const char *y, int64_t count);
  SoftmaxState (*merge)(Softmax, SoftmaxState, SoftmaxState);
  void (*results)(Softmax, const char *x, const char *y, char *out, int64_t count, SoftmaxState, bool is_streamed);
};

struct Softmaxes {
  SoftmaxKernel kernels[4]; // float64, float32, float16, bfloat16
};

// Computes blocks of short slices; by dtype, as above.
struct ShortSoftmaxes {
  void (*blocks[4])(Softmax, const ShortSoftmax &);
};

} // namespace orchard

ORCHARD_ISA_TABLE(Softmaxes, softmaxes)
ORCHARD_ISA_TABLE(ShortSoftmaxes, short_softmaxes)
