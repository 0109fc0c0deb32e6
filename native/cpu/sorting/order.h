// Order statistics of short slices, without sorted copies of a tensor.
#pragma once

// Quantiles of floats, in their dtype: [quantiles, slices], dense, for slices in row-major order. The quantile of n
// numbers is interpolated at the position q (n - 1) among them. With `skips_nan` NaN are left out; otherwise a slice
// with NaN gets NaN.
#include "../../.build/generated/quantile_block.h"

// The last index of the most frequent element of each slice; the smallest of several. NaN equals nothing.
#include "../../.build/generated/mode_block.h"

#include "../slices.h"
