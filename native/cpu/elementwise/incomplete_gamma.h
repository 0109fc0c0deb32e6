// Functions of two numbers that are related to the gamma function: the regularized incomplete gamma functions P(a, x)
// and Q(a, x) = 1 - P(a, x), Hurwitz's zeta function, and polygamma.
#pragma once

// P(a, x), Q(a, x), the zeta function of a at x, and the derivative of ψ of the given order at x, which does not read a
#include "../../.build/generated/gamma_pair.h"

// All operands are dense: a, x and the result.
#include "../../.build/generated/gamma_pair_block.h"

#include "../names.h"
#include "../nest.h"

namespace orchard {

// Nodes on [0, 1] and weights of a Gauss-Legendre rule, for an integral that ends where the logarithm of the integrand
// is -depth.
struct GammaRule {
  static constexpr int most_points = 32;
  int points;
  double depth;
  double at[most_points], weight[most_points];
};

using GammaPairRow = void (*)(const GammaRule &rule, GammaPair function, double order, const void *a, const void *x,
                              void *out, int64_t count);

struct GammaPairs {
  GammaPairRow of_double, of_float;
};

} // namespace orchard

ORCHARD_ISA_TABLE(GammaPairs, gamma_pairs)
