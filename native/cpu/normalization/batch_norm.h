// Batch normalization of channels, and its gradients: src/ops/normalization/batch_norm_primitive.ts has the formulas.
#pragma once

#include "../functions.h"

namespace orchard {

// x [batch, channels, inner], contiguous.
struct BatchSizesBlock {
  DTypeField dtype;
  Whole batch, channels, inner;
  Real eps;
};

struct BatchNormBlock : BatchSizesBlock {
  Flag has_weight, has_bias;
  Flag is_given; // means and variances are operands, not results
  Whole offsets[6];
};

struct BatchNormGradientBlock : BatchSizesBlock {
  Flag has_weight, has_grad_x, has_grad_weight, has_grad_bias;
  Whole offsets[8];
};

// Some adjacent channels of x. Each element of the batch has a run of channels · inner elements, and the next run is
// `step` elements further.
struct ChannelSlab {
  int64_t batch, channels, inner, step;
  double eps;
};

// T is the type of x, C the compute type. Absent operands are null.
struct NormalizeChannels {
  ChannelSlab slab;
  bool is_given;
  bool is_streamed;          // results bypass the caches
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

// Channels with fewer elements per element of the batch are computed side by side, up to this many columns.
constexpr int64_t least_inner = 32, slab_columns = 64;

struct BatchNormKernel {
  void (*normalize)(const NormalizeChannels &);
  void (*gradients)(const ChannelGradients &);
};

struct BatchNorms {
  BatchNormKernel kernels[4]; // by dtype: float64, float32, float16, bfloat16
};

} // namespace orchard

ORCHARD_ISA_TABLE(BatchNorms, batch_norms)
