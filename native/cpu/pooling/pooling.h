// Max pooling over windows of planes, and its adjoint. src/ops/pooling/primitive.ts says where windows are.
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
  // Returns the lines of results: a line varies along the last axis only.
  int64_t lines() const { return axes[0].output * axes[1].output; }
};

struct MaxPoolKernel {
  // Computes a line of the results of a plane. Places in the plane go to `indices`, which may be null; a window without
  // an element has -1.
  void (*line)(const Pooling &pooling, const void *plane, int64_t line, void *values, void *indices);
  // Adds gradients to the elements of a plane that indices name. `sums`, in the compute type, is as large as a plane;
  // it is the plane itself if that has the compute type.
  void (*scatter)(const Pooling &pooling, const void *gradient, const void *indices, void *sums, void *plane);
};

enum PoolingIndex : int { pooling_int32, pooling_int64, pooling_indices };

struct MaxPools {
  MaxPoolKernel kernels[4][pooling_indices]; // by dtype: float64, float32, float16, bfloat16
};

} // namespace orchard

ORCHARD_ISA_TABLE(MaxPools, max_pools)
