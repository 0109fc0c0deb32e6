// Operations on contiguous vectors.
#pragma once

#include "../isa.h"

#include <cstdint>

namespace orchard::ORCHARD_ISA {

// Returns Σ x[i] y[i]. Sums are kept per lane, so that the loop is vectorized, and are merged as a binary tree, so that
// the result is the same on every instruction set.
template <class T> inline T dot(const T *x, const T *y, int64_t count) {
  constexpr int lanes = 32;
  T sums[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int lane = 0; lane < lanes; lane++) sums[lane] += x[i + lane] * y[i + lane];
  for (int lane = 0; i < count; i++, lane++) sums[lane] += x[i] * y[i];
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; lane++) sums[lane] += sums[lane + half];
  return sums[0];
}

// y -= factor x.
template <class T> inline void subtract_multiple(T *__restrict y, const T *__restrict x, T factor, int64_t count) {
  for (int64_t i = 0; i < count; i++) y[i] -= factor * x[i];
}

} // namespace orchard::ORCHARD_ISA
