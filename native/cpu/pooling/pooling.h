// Max pooling over windows of planes, and its gradient. src/ops/pooling/primitive.ts defines the windows.
#pragma once

#include "../../.build/generated/pooling_head.h"
#include "../../.build/generated/max_pool_block.h"
#include "../../.build/generated/max_pool_gradient_block.h"

#include "../convolution/convolution.h"

namespace orchard {

// A kernel size that stands for windows that divide the input, as adaptive pooling does; their sizes may differ by one.
// Strides, dilation and padding are then ignored.
constexpr int64_t adaptive_kernel = 0;

struct Pooling {
  ConvolutionAxis axes[convolution_axes];

  int64_t pixels() const { return axes[0].input * axes[1].input * axes[2].input; }
  int64_t results() const { return axes[0].output * axes[1].output * axes[2].output; }
  // Returns the number of lines of results. A line extends along the last axis.
  int64_t lines() const { return axes[0].output * axes[1].output; }
};

struct MaxPoolKernel {
  // Computes a line of results of a plane. `indices`, which may be null, receives the position of each maximum in the
  // plane, or -1 for an empty window.
  void (*line)(const Pooling &pooling, const void *plane, int64_t line, void *values, void *indices);
  // Adds gradients to the elements of a plane that indices select. `sums` has the size of a plane and the compute type;
  // it is the plane itself if that has the compute type.
  void (*scatter)(const Pooling &pooling, const void *gradient, const void *indices, void *sums, void *plane);
};

enum PoolingIndex : int { pooling_int32, pooling_int64, pooling_indices };

struct MaxPools {
  MaxPoolKernel kernels[4][pooling_indices]; // by dtype: float64, float32, float16, bfloat16
};

// Computes `count` adjacent planes, at most MaxPoolBlocks::planes. `scratch` has room for MaxPoolBlocks::planes planes
// of x and of the results in the compute type, and for as many positions of the same size; each rounded up to a
// multiple of MaxPoolBlocks::planes elements.
using MaxPoolPlanes = void (*)(const Pooling &pooling, const void *x, int64_t count, void *values, void *indices,
                               void *scratch);

struct MaxPoolBlocks {
  int64_t planes;
  MaxPoolPlanes kernels[4][pooling_indices]; // as MaxPools
};

} // namespace orchard

ORCHARD_ISA_TABLE(MaxPoolBlocks, max_pool_blocks)
ORCHARD_ISA_TABLE(MaxPools, max_pools)
