// Functions of neighbors along an axis: integrals by the trapezoidal rule and slopes, for samples at equal distances,
// and differences.
#pragma once

// The integral, the integrals up to each sample but the first, the differences of neighbors, and the slopes: for
// samples at the distance h, (y[i + 1] − y[i − 1]) / 2h, and at the ends (y[1] − y[0]) / h and (y[n − 1] − y[n − 2]) /
// h
#include "../../.build/generated/neighbors.h"

// The slices are those of the samples y and of the result, which has y's dtype: one element per slice for `integral`,
// as many as y has for `slopes`, otherwise one less. Differences do not depend on the distance.
#include "../../.build/generated/neighbors_block.h"

#include "../names.h"
#include "../slices.h"

namespace orchard {

// `count` slices of `length` samples, at least 2. Strides are those of y and of the result.
struct NeighborsRun {
  const void *y;
  void *out;
  int64_t length, count, along[2], across[2];
  Neighbors function;
  double distance;
  bool ends[2];  // of `slopes`: whether to compute them at the first and at the last sample
  double before; // of `integrals` of adjacent samples: twice the integral up to the first sample, without the distance
};
using ComputeNeighbors = void (*)(const NeighborsRun &run);
// By dtype: float64, float32, float16, bfloat16. `total` is Σ (y[i] + y[i + 1]) of `count` pairs of adjacent samples.
struct NeighborsOf {
  ComputeNeighbors run[4];
  double (*total[4])(const char *y, int64_t count);
};

} // namespace orchard

ORCHARD_ISA_TABLE(NeighborsOf, neighbors_of)
