// Elementwise losses, their sums and their gradients.
//
//   squared error          (x - t)²
//   binary cross entropy   w ((1 - t) x + (1 - t + v t) s),   s = log(1 + exp(-x)) = log1p(exp(-|x|)) + max(-x, 0)
// with a weight w and a weight v of positive targets, which are 1 except in the weighted loss.
#pragma once

#include "../nest.h"

namespace orchard {

ORCHARD_NAMES(Loss, squaredError, binaryCrossEntropy, weightedBinaryCrossEntropy)

// The nest goes over x's shape. Operands have the dtype of x; a loss without weights gets x in their place.
struct LossBlock {
  static constexpr int operands = 5; // x, target, weight, that of positive targets, the result

  Name<Loss> loss;
  DTypeField dtype; // a float
  Flag is_summed;   // the result is one number, the sum times the factor, in the compute type
  Real factor;
  Whole offsets[operands];
  NestBlock<operands> nest;
};

struct LossGradientBlock {
  static constexpr int operands = 7; // as above, with the gradient of each loss, then those of x and of the target

  Name<Loss> loss;
  DTypeField dtype;
  Flag needs[2]; // the gradient of x, and that of the target
  Real factor;
  Whole offsets[operands];
  NestBlock<operands> nest;
};

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

// A run of elements of a loss, with a stride for each operand; operands that are not needed are null.
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
  void (*gradients)(Loss, const LossRun &); // times the factor and `scale`, which is of the compute type
};

struct Losses {
  LossKernel kernels[4]; // float64, float32, float16, bfloat16
};

} // namespace orchard

ORCHARD_ISA_TABLE(Losses, losses)
