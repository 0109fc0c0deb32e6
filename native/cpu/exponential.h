// eˣ for x ≤ 0, the difference to a maximum, without branches or calls, so that loops over it are vectorized. Accurate
// to 1 unit in the last place; NaN gives NaN. Results below 3e-38 are flushed to 0, as on a GPU: arithmetic with
// subnormal numbers would take a hundred times as long.
//
// eˣ = 2ⁿ eʳ with n = round(x / ln 2) and r = x - n ln 2. Adding 1.5 · 2²³ rounds to an integer and leaves n in the low
// bits, from which it is added to the exponent of eʳ.
#pragma once

#include "elementwise/math.h"

namespace orchard::ORCHARD_ISA {

inline float exponential(float x) {
  // `least` is the smallest x for which the result is normal for every r.
  constexpr float rounder = 12582912.0f, least = -86.5f;
  float shifted = fused(x, log2_e, rounder);
  float y = expm1_reduced(reduced_by_ln2(x, shifted - rounder)) + 1.0f;
  float result = float_of(bits_of(y) + (bits_of(shifted) << 23));
  return x < least ? 0.0f : result;
}

inline double exponential(double x) { return std::exp(x); }

// eˣ for a term of a sum whose largest term is 1, with a sixth fewer operations: 2ⁿ 2ᶠ with f = x log₂ e - n, without
// splitting log₂ e into two parts. Rounding log₂ e adds |x| 2⁻²⁶ to a term's relative error, but less than 2⁻²⁷ to the
// error of the sum, since |x| is large only for small terms. The polynomial is accurate to 2e-8.
inline float exponential_term(float x) {
  constexpr float rounder = 12582912.0f, least = -86.5f;
  float shifted = fused(x, log2_e, rounder);
  float f = fused(x, log2_e, rounder - shifted);
  float y =
      polynomial(f, 0.000154614449f, 0.00134004280f, 0.00961805694f, 0.0555032715f, 0.240226507f, 0.693147182f, 1.0f);
  float result = float_of(bits_of(y) + (bits_of(shifted) << 23));
  return x < least ? 0.0f : result;
}

inline double exponential_term(double x) { return std::exp(x); }

} // namespace orchard::ORCHARD_ISA
