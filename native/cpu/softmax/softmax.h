// Softmax and log-softmax along an axis, and their gradients.
#pragma once

#include "../scan/lines.h"

namespace orchard {

// In the order of `softmaxNames` in src/ops/softmax/names.ts. The gradients take the forward's result y as second operand:
// y (g - Σ g y) and g - eʸ Σ g.
enum class Softmax : int { softmax, log_softmax, softmax_gradient, log_softmax_gradient };
inline constexpr int softmax_count = 4;

constexpr int64_t softmax_lines = 256; // lines that are worked on together at most, where they are adjacent in memory

// Of x (or g), y and out; `scratch` is two lines of the compute type where a batch is one line.
struct SoftmaxBatch : LineBatch {
  char *scratch;
};

// What a line's results need to know of it: the largest element (not for gradients), and the sum over exp(x - largest), g y, or g.
struct SoftmaxState {
  double largest, sum;
};

// Whole lines; or of adjacent elements first states, which are merged, and then results.
struct SoftmaxKernel {
  void (*lines)(Softmax, const SoftmaxBatch &);
  SoftmaxState (*state)(Softmax, const char *x, const char *y, int64_t count);
  SoftmaxState (*merge)(Softmax, SoftmaxState, SoftmaxState);
  void (*results)(Softmax, const char *x, const char *y, char *out, int64_t count, SoftmaxState, bool is_streamed);
};

struct Softmaxes {
  SoftmaxKernel kernels[4]; // float64, float32, float16, bfloat16
};

} // namespace orchard

ORCHARD_ISA_TABLE(Softmaxes, softmaxes)
