// Batch normalization and its gradients; src/ops/normalization/batch_norm_primitive.ts has the formulas.
#pragma once

#include "../../.build/generated/batch_norm_gradient_block.h"

// The shape of x is [batch, channels, inner]; it is contiguous.
#include "../../.build/generated/batch_norm_head.h"

// - is_given: whether means and variances are operands instead of results
#include "../../.build/generated/batch_norm_block.h"

#include "../functions.h"
#include "tuning.h"

namespace orchard {

using tuning::normalization::least_inner;
using tuning::normalization::slab_columns;

// Some adjacent channels of x. Each element of the batch has channels · inner adjacent elements of these channels. The
// next batch element's are `step` elements further on.
struct ChannelSlab {
  int64_t batch, channels, inner, step;
  double eps;
};

// T is the dtype of x, and C its compute type. Absent operands are null.
struct NormalizeChannels {
  ChannelSlab slab;
  bool is_given;
  bool is_streamed;          // results are stored with nontemporal stores
  const void *x;             // T
  const void *weight, *bias; // C
  void *mean, *variance;     // C
  void *out;                 // T
};

struct ChannelGradients {
  ChannelSlab slab;
  const void *x, *grad_out;             // T
  const void *weight, *mean, *variance; // C
  void *grad_x;                         // T
  void *grad_weight, *grad_bias;        // C
};

struct BatchNormKernel {
  void (*normalize)(const NormalizeChannels &);
  void (*gradients)(const ChannelGradients &);
};

struct BatchNorms {
  BatchNormKernel kernels[4]; // by dtype: float64, float32, float16, bfloat16
};

} // namespace orchard

ORCHARD_ISA_TABLE(BatchNorms, batch_norms)
