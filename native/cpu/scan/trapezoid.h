// Integrals along an axis by the trapezoidal rule, for samples at equal distances.
#pragma once

#include "../slices.h"

namespace orchard {

// The slices are those of the samples y and of the result, which has y's dtype: one element per slice, or with
// `is_cumulative` one less than y has.
struct TrapezoidBlock {
  DTypeField dtype;
  Flag is_cumulative;
  Real distance;
  SlicesBlock<2> slices;
};

// `count` slices of `length` samples, at least 2. Strides are those of y and of the result.
struct TrapezoidRun {
  const void *y;
  void *out;
  int64_t length, count, along[2], across[2];
  bool is_cumulative;
  double distance;
};
using IntegrateRun = void (*)(const TrapezoidRun &run);
struct Trapezoids {
  IntegrateRun run[4]; // by dtype: float64, float32, float16, bfloat16
};

} // namespace orchard

ORCHARD_ISA_TABLE(Trapezoids, trapezoids)
