// Weighted sums over windows along the last three axes: average pooling, adaptive average pooling and interpolation,
// which are products of one map per axis, and their gradients. src/ops/pooling/resample.ts defines the maps.
#pragma once

// The table has for each axis: the start, the length and the divisor of each result's window, a factor for each element
// of the input, and the weights of all windows, or none if all are 1.
// - dtype: a float
#include "../../.build/generated/resample_block.h"

#include "../block.h"
#include "../dtypes.h"

namespace orchard {

inline constexpr int resample_axes = std::extent_v<decltype(ResampleBlock::input)>;

struct ResampleAxis {
  int64_t input, output;
  const int64_t *starts, *lengths;
  const int64_t *weights_at;        // the number of the first weight of each window
  const double *weights;            // null if all are 1
  const double *divisors, *factors; // null if all are 1
  int64_t length, step;             // of all windows, and from each window to the next; -1 if they differ
  int64_t longest;                  // the largest of the lengths
};

struct Resampling {
  ResampleAxis axes[resample_axes];
};

// Computes a line of results, along the last axis. `scratch` has room for a line of the input and one of results.
using ResampleLine = void (*)(const Resampling &resampling, const void *plane, int64_t line, void *out,
                              double *scratch);

// Computes `count` adjacent planes, at most Resamplings::together. `scratch` has room for `together` planes of the
// input and of the results, each rounded up to a multiple of `together` elements, and for `together` lines of the
// input.
using ResamplePlanes = void (*)(const Resampling &resampling, const void *x, int64_t count, void *out, double *scratch);

struct Resamplings {
  ResampleLine lines[4]; // by dtype: float64, float32, float16, bfloat16
  int64_t together;
  ResamplePlanes planes[4];
};

// Returns whether a window gives the same results as the one before it, as in the gradient of a pooling.
inline bool repeats(const ResampleAxis &axis, int64_t window) {
  return window > 0 && !axis.weights && axis.starts[window] == axis.starts[window - 1] &&
         axis.lengths[window] == axis.lengths[window - 1] &&
         (!axis.divisors || axis.divisors[window] == axis.divisors[window - 1]);
}

} // namespace orchard

ORCHARD_ISA_TABLE(Resamplings, resamplings)
