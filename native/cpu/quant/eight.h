// Products of up to eight rows of x in 8 bits (fast.h) with rows of weights: each row of x has a lane, and bytes of
// weights are unpacked once for all of them.
#pragma once

#include "fast.h"

namespace orchard {

constexpr int64_t lanes_of_rows = 8;

// Rows of x, one in each lane; where there are fewer rows, zeros.
struct ByteLanes {
  int64_t parts;
  int8_t *levels;     // of a part, of four of its levels, of a lane
  float *scales;      // of a part, of a lane
  int32_t *sums;      // of a part, of its first 16 levels and of the others, of a lane: Σ level
  float *scaled_sums; // the same: scale · Σ level
};

// Null where there are no vectors for it.
struct EightRowsKernels {
  void (*arrange)(const ByteRows &x, int64_t count, const ByteLanes &out);
  // As `FastKernels::multiply`.
  void (*multiply)(const Weights &, const ByteLanes &x, int64_t count, int64_t begin, int64_t end, float *out);
};

} // namespace orchard

ORCHARD_ISA_TABLE(EightRowsKernels, eight_rows_kernels)
