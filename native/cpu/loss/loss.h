// Losses of one element each, their sums and their gradients.
//
//   squared error          (x - t)²
//   binary cross entropy   w ((1 - t) x + (1 - t + v t) s),   s = log(1 + exp(-x)) = log1p(exp(-|x|)) + max(-x, 0)
// with a weight w and a weight v of positive targets, which are 1 but in the weighted one.
#pragma once

#include "../block.h"

namespace orchard {

// In the order of `lossNames` in src/ops/loss/names.ts.
enum class Loss : int { squared_error, binary_cross_entropy, weighted_binary_cross_entropy };
inline constexpr int loss_count = 3;

enum LossOperand { loss_x, loss_target, loss_weight, loss_positive, loss_out, loss_target_out, loss_scale, loss_operands };

// A stretch of elements of a loss, with a stride for each operand; those that are not wanted are null.
struct LossRun {
  char *operands[loss_operands];
  int64_t strides[loss_operands];
  int64_t count;
  double factor; // of the gradients
  bool is_streamed; // results are more than caches keep
};

struct LossKernel {
  void (*values)(Loss, const LossRun &);
  double (*sum)(Loss, const LossRun &);
  void (*slopes)(Loss, const LossRun &); // times the factor and `scale`, which is of the compute type
};

struct Losses {
  LossKernel kernels[4]; // float64, float32, float16, bfloat16
};

} // namespace orchard

ORCHARD_ISA_TABLE(Losses, losses)
