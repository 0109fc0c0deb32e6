// Normalization of groups of channels, with a weight and a bias for each channel, in one call.
#pragma once

#include "../block.h"
#include "../dtypes.h"

namespace orchard {

// x and the result are [batch, channels, inner], contiguous. weight and bias are vectors of channels in the compute
// type.
struct GroupNormBlock {
  DTypeField dtype; // a float
  Whole batch, channels, inner, groups;
  Real eps;
  Flag has_weight, has_bias;
  Whole offsets[4]; // x, weight, bias, result
};

// Normalizes a group of `channels` channels, each of `inner` elements. weight and bias may be null.
using NormalizeGroup = void (*)(const void *x, int64_t channels, int64_t inner, double eps, const void *weight,
                                const void *bias, void *out);
struct GroupNorms {
  NormalizeGroup group[4]; // by dtype: float64, float32, float16, bfloat16
};

} // namespace orchard

ORCHARD_ISA_TABLE(GroupNorms, group_norms)
