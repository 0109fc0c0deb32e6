// Elementwise losses, their sums and their gradients.
//
//   squared error          (x - t)²
//   binary cross entropy   w ((1 - t) x + (1 - t + v t) s),   s = log(1 + exp(-x)) = log1p(exp(-|x|)) + max(-x, 0)
//   of a probability       (t - 1) max(log1p(-x), -100) - t max(log x, -100)
// with a weight w and a weight v of positive targets, which are 1 except in the weighted loss.
#pragma once

// The nest iterates over x's shape. All operands have the dtype of x; for a loss without weights, x is passed in their
// place.
// - dtype: a float
// - is_summed: the result is one number in the compute type: the sum times the factor
// - offsets: of x, target, weight, weight of positive targets, and the result
#include "../../.build/generated/loss_block.h"

// - needs: whether to compute the gradients of x and of the target
// - offsets: as above, then of the gradients of each loss, of x and of the target
#include "../../.build/generated/loss_gradient_block.h"

#include "../nest.h"

namespace orchard {

enum LossOperand {
  loss_x,
  loss_target,
  loss_weight,
  loss_positive,
  loss_out,
  loss_target_out,
  loss_scale,
  loss_operands
};

// A run of elements, with a stride for each operand; operands that are not used are null.
struct LossRun {
  char *operands[loss_operands];
  int64_t strides[loss_operands];
  int64_t count;
  double factor;    // of the gradients
  bool is_streamed; // results exceed the caches
};

struct LossKernel {
  void (*values)(Loss, const LossRun &);
  double (*sum)(Loss, const LossRun &);
  void (*gradients)(Loss, const LossRun &); // multiplied by the factor and by `scale`, which has the compute type
};

struct Losses {
  LossKernel kernels[4]; // float64, float32, float16, bfloat16
};

} // namespace orchard

ORCHARD_ISA_TABLE(Losses, losses)
