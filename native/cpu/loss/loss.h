// Losses of single elements, their sums and their gradients. kernels/formulas/losses.h has the formulas.
#pragma once

// The nest iterates over x's shape. All operands have the dtype of x; x replaces operands that the loss lacks.
// - dtype: a float
// - is_summed: the result is one number in the compute type: the sum times the factor
// - offsets: of x, target, third and fourth operand, and the result
#include "../../.build/generated/loss_block.h"

// - needs: whether to compute the gradients of the first three operands
// - offsets: as above, then of the gradients of each loss, and of the first three operands
#include "../../.build/generated/loss_gradient_block.h"

#include "../nest.h"

namespace orchard {

enum LossOperand {
  loss_x,
  loss_target,
  loss_third,
  loss_fourth,
  loss_out,
  loss_target_out,
  loss_third_out,
  loss_scale,
  loss_operands
};

// The results of a gradient, in the order of the first three operands.
constexpr LossOperand loss_gradients[] = {loss_out, loss_target_out, loss_third_out};

// A run of elements, with a stride for each operand; operands that are not used are null.
struct LossRun {
  char *operands[loss_operands];
  int64_t strides[loss_operands];
  int64_t count;
  double factor; // of the gradients
  double parameters[2];
  bool is_streamed; // results exceed the caches
};

struct LossKernel {
  int (*operands)(Loss); // operands of a loss besides its results
  void (*values)(Loss, const LossRun &);
  double (*sum)(Loss, const LossRun &);
  void (*gradients)(Loss, const LossRun &); // multiplied by the factor and by `scale`, which has the compute type
};

struct Losses {
  LossKernel kernels[4]; // float64, float32, float16, bfloat16
};

} // namespace orchard

ORCHARD_ISA_TABLE(Losses, losses)
