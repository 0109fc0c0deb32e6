// The regularized incomplete gamma functions P(a, x) and Q(a, x) = 1 - P(a, x).
#pragma once

#include "../nest.h"

namespace orchard {

// All operands are dense: a, x and the result.
struct IncompleteGammaBlock {
  DTypeField dtype;
  Flag is_upper;
  Whole offsets[3], count;
};

// Nodes on [0, 1] and weights of the Gauss-Legendre rule.
struct GammaRule {
  static constexpr int points = 32;
  double at[points], weight[points];
};

using IncompleteGammaRow = void (*)(const GammaRule &rule, bool is_upper, const void *a, const void *x, void *out,
                                    int64_t count);

struct IncompleteGammas {
  IncompleteGammaRow of_double, of_float;
};

} // namespace orchard

ORCHARD_ISA_TABLE(IncompleteGammas, incomplete_gammas)
