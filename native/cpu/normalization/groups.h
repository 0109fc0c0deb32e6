// Normalization of groups of channels, with a weight and a bias for each channel, and its gradients, in one call each.
#pragma once

// x and the result are [batch, channels, inner], contiguous. weight and bias are vectors of channels in the compute
// type.
// - dtype: a float
// - offsets: x, weight, bias, result
#include "../../.build/generated/group_norm_block.h"

// x, the gradients of the result and of x are [batch, channels, inner], contiguous. weight and the gradients of weight
// and bias are vectors of channels in the compute type.
// - dtype: a float
// - offsets: x, gradient, weight, gradient of x, of weight, of bias
#include "../../.build/generated/group_norm_gradient_block.h"

#include "../block.h"
#include "../dtypes.h"

namespace orchard {

// The elements of channels shorter than this are normalized as if each were a channel.
constexpr int64_t short_channel = 16;

// Normalizes a group of `channels` channels, each of `inner` elements. weight and bias may be null.
using NormalizeGroup = void (*)(const void *x, int64_t channels, int64_t inner, double eps, const void *weight,
                                const void *bias, void *out);

// Computes the gradient of a group. `sums` gets two numbers for each channel, which the batch sums to the gradients of
// the bias and of the weight. weight may be null.
using GroupGradient = void (*)(const void *x, const void *gradient, int64_t channels, int64_t inner, double eps,
                               const void *weight, void *gradient_x, double *sums);

// By dtype: float64, float32, float16, bfloat16
struct GroupNorms {
  NormalizeGroup group[4];
  GroupGradient gradient[4];
};

} // namespace orchard

ORCHARD_ISA_TABLE(GroupNorms, group_norms)
