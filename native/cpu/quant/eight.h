// Products of up to eight 8-bit rows of x (fast.h) with rows of weights. Each row of x has a vector lane, and the bytes
// of weights are unpacked once for all of them.
#pragma once

#include "fast.h"

namespace orchard {

constexpr int64_t lanes_of_rows = 8;

// Rows of x, one per lane. Unused lanes are zeros.
struct ByteLanes {
  int64_t parts;
  int8_t *levels;     // [part][8][lane][4]: in groups of four levels
  float *scales;      // [part][lane]
  int32_t *sums;      // [part][2][lane]: Σ level of the first 16 levels, and of the others
  float *scaled_sums; // in the same layout: scale · Σ level
};

// Null if the instruction set lacks the vectors for it.
struct EightRowsKernels {
  void (*arrange)(const ByteRows &x, int64_t count, const ByteLanes &out);
  // Like `FastKernels::multiply`.
  void (*multiply)(const Weights &, const ByteLanes &x, int64_t count, int64_t begin, int64_t end, float *out);
};

} // namespace orchard

ORCHARD_ISA_TABLE(EightRowsKernels, eight_rows_kernels)
