// Running maxima and minima along an axis, with their indices.
#pragma once

// - dtype: of x and the values; indices are int64
// - slices: x, values, indices
#include "../../.build/generated/running_extremum_block.h"

#include "../slices.h"
#include "tuning.h"

namespace orchard {

using tuning::scan::max_extremum_slices;

// Slices along the last of the other axes. Strides are those of x, values and indices.
struct ExtremumBatch {
  const char *x;
  char *values;
  int64_t *indices;
  int64_t length, slices;
  int64_t along[3], across[3]; // strides between elements of a slice, and between slices
};

// Indexed by dtype, for maxima and for minima; null for bool.
struct RunningExtrema {
  void (*maxima[dtype_count])(const ExtremumBatch &);
  void (*minima[dtype_count])(const ExtremumBatch &);
};

} // namespace orchard

ORCHARD_ISA_TABLE(RunningExtrema, running_extrema)
