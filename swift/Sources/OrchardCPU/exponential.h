// eˣ in float32 without a branch or a call, so that loops over it become vectors. Within 1 unit in the last place; the same bits on
// every instruction set. NaN stays, −∞ gives 0, what is too large gives ∞.
//
// eˣ = 2ⁿ eʳ with n = round(x / ln 2) and r = x − n ln 2, in two parts; eʳ by the polynomial of Cephes' expf. 2ⁿ is multiplied in
// two steps, because n reaches beyond what one float's exponent holds.
#pragma once

#include "dtypes.h"

#include <cmath>

namespace orchard::ORCHARD_ISA {

inline float exponential(float x) {
  constexpr float least = -104.0f, most = 89.0f; // beyond: 0 and ∞
  constexpr float rounder = 12582912.0f;         // 1.5 · 2²³: adding it rounds to a whole number in the low bits
  x = x < least ? least : x;
  x = x > most ? most : x;
  float shifted = x * 1.44269504088896341f + rounder;
  int32_t n = int32_t(bits_of(shifted)) - int32_t(bits_of(rounder));
  float whole = shifted - rounder;
  float r = (x - whole * 0.693359375f) - whole * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  float y = (p * (r * r) + r) + 1.0f;
  int32_t half = n >> 1;
  return y * float_of(uint32_t(half + 127) << 23) * float_of(uint32_t(n - half + 127) << 23);
}

inline double exponential(double x) { return std::exp(x); }

} // namespace orchard::ORCHARD_ISA
