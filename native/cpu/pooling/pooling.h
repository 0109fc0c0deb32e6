// The largest element of each window of planes, and the adjoint. src/ops/pooling/primitive.ts says where windows stand.
#pragma once

#include "../convolution/convolution.h"

namespace orchard {

struct PoolingBlock {
  DTypeField dtype, index_dtype;
  Whole planes;
  Whole input[convolution_axes], output[convolution_axes], kernel_size[convolution_axes];
  Whole stride[convolution_axes], dilation[convolution_axes], before[convolution_axes];
};

struct MaxPoolBlock : PoolingBlock {
  Flag has_indices;
  Whole offsets[3];
};

struct MaxPoolGradientBlock : PoolingBlock {
  Whole offsets[3];
};

struct Pooling {
  ConvolutionAxis axes[convolution_axes];

  int64_t pixels() const { return axes[0].input * axes[1].input * axes[2].input; }
  int64_t results() const { return axes[0].output * axes[1].output * axes[2].output; }
  // Results that differ along the last axis alone.
  int64_t lines() const { return axes[0].output * axes[1].output; }
};

struct MaxPoolKernel {
  // A line of the results of a plane. Places in the plane go to `indices`, -1 where a window has no element; it may be
  // null.
  void (*line)(const Pooling &own, const void *plane, int64_t line, void *values, void *indices);
  // Σ of gradients to the elements of a plane that indices name. `sums`: of the type that computes, as large as a
  // plane; the plane itself where it has that type.
  void (*scatter)(const Pooling &own, const void *gradient, const void *indices, void *sums, void *plane);
};

enum PoolingIndex : int { pooling_int32, pooling_int64, pooling_indices };

struct MaxPools {
  MaxPoolKernel kernels[4][pooling_indices]; // by dtype: float64, float32, float16, bfloat16
};

} // namespace orchard

ORCHARD_ISA_TABLE(MaxPools, max_pools)
