// A row of levels whose scales are stored apart, one for each group of values.
#pragma once

#include "weights.h"

namespace orchard::ORCHARD_ISA {

struct GroupRow {
  const void *scales, *biases;
  DType dtype;
  const uint8_t *row;
  int64_t first_group, parts;
  int shift; // a group has 2^shift parts

  GroupRow(const Weights &weights, int64_t at)
      : scales(weights.scales), biases(weights.biases), dtype(weights.scale_dtype),
        row(weights.packed + at * weights.row_bytes), first_group(at * (weights.columns / weights.group)),
        parts(weights.columns / 32), shift(weights.group == 32   ? 0
                                           : weights.group == 64 ? 1
                                                                 : 2) {}
};

} // namespace orchard::ORCHARD_ISA
