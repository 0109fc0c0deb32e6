// Slices whose norm is bounded.
#pragma once

// Dense floats [outer, count, inner]: slice i is x[:, i, :]. A slice whose norm of the given order exceeds `largest` is
// multiplied by largest / (norm + eps).
#include "../../.build/generated/renorm_block.h"

#include "../bounds.h"
#include "../isa.h"

#include <cmath>

namespace orchard {

// The parts of a norm of order p: Σ |x|ᵖ, or for an infinite order the largest |x|.
struct RenormKernels {
  // Returns the part of adjacent elements.
  double (*part)(const void *x, int64_t count, double order);
  // Adds each element's power to its sum, or replaces it by the larger.
  void (*add_row)(const void *x, int64_t count, double order, double *sums);
  // Bounds the norms of `count` adjacent rows.
  void (*rows)(const void *x, void *out, int64_t count, int64_t length, double order, double largest, double eps);
  // out = x · factor, and out = x · factors[i / repeats] for whole rows.
  void (*scale)(const void *x, void *out, int64_t count, double factor);
  void (*scale_row)(const void *x, void *out, int64_t count, int64_t repeats, const double *factors);
};

struct Renorms {
  RenormKernels kernels[4]; // by dtype: float64, float32, float16, bfloat16
};

namespace ORCHARD_ISA {

// Returns the factor of a slice from the sum of its powers, computed in type C as the operations of the composition
// are.
template <class C> double renorm_factor(double total, double order, double largest, double eps) {
  const double exact = std::isinf(order) || order == 1 ? total
                       : order == 2                    ? std::sqrt(total)
                                                       : std::pow(total, 1 / order);
  const C norm = C(exact);
  return norm > C(largest) ? double(C(largest) / (norm + C(eps))) : 1;
}

} // namespace ORCHARD_ISA
} // namespace orchard

ORCHARD_ISA_TABLE(Renorms, renorms)
