// Order statistics of short slices, without sorted copies of a tensor.
#pragma once

#include "../slices.h"

namespace orchard {

ORCHARD_NAMES(QuantileInterpolation, linear, lower, higher, midpoint, nearest)

// Quantiles of floats, in their dtype: [quantiles, slices], dense, for slices in row-major order. The quantile of n
// numbers is interpolated at the position q (n - 1) among them. With `skips_nan` NaN are left out; otherwise a slice
// with NaN gets NaN.
struct QuantileBlock {
  DTypeField dtype;
  Whole quantiles;
  Name<QuantileInterpolation> interpolation;
  Flag skips_nan;
  SlicesBlock<1> slices;
};

// The last index of the most frequent element of each slice; the smallest of several. NaN equals nothing.
struct ModeBlock {
  DTypeField dtype;
  SlicesBlock<1> slices;
};

} // namespace orchard
