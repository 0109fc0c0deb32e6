// Sums of few terms, for which the `sum_lanes` partial sums of lanes.h would take longer.
#pragma once

#include "isa.h"

#include <cstdint>

namespace orchard::ORCHARD_ISA {

// A loop of this length is one or two vectors.
constexpr int few_lanes = 8;

// Σ term(i) over 0 ≤ i < count, in float64. The order of the additions depends on the count only.
template <class Term> inline double few_summed(int64_t count, Term term) {
  double sums[few_lanes] = {};
  int64_t i = 0;
  for (; i + few_lanes <= count; i += few_lanes)
    for (int lane = 0; lane < few_lanes; lane++) sums[lane] += term(i + lane);
  double rest = 0;
  for (; i < count; i++) rest += term(i);
  for (int half = few_lanes / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; lane++) sums[lane] += sums[lane + half];
  return sums[0] + rest;
}

} // namespace orchard::ORCHARD_ISA
