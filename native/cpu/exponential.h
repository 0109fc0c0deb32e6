// eˣ for x ≤ 0, the difference to a maximum, without branches or calls, so that loops over it are vectorized. Accurate
// to 1 unit in the last place (float64: 2); NaN gives NaN. Subnormal results are flushed to 0, as on a GPU: arithmetic
// with subnormal numbers would take a hundred times as long.
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

// The C library's function would not be vectorized. 2ⁿ is a factor here: NaN stays NaN, whatever its other bits.
inline double exponential(double x) {
  constexpr double rounder = 6755399441056767.0, least = -708.0; // 1.5 · 2⁵² + 1023: leaves the biased exponent
  const double shifted = fused(x, float64::log2_e, rounder);
  const double y = float64::expm1_reduced(float64::reduced_by_ln2(x, shifted - rounder)) + 1.0;
  const double result = y * float_of(bits_of(shifted) << 52);
  return x < least ? 0.0 : result;
}

// eˣ for a term of a sum whose largest term is 1, with a sixth fewer operations: 2ⁿ 2ᶠ with f = x log₂ e - n, without
// splitting log₂ e into two parts. Rounding log₂ e adds |x| 2⁻²⁶ to a term's relative error, but less than 2⁻²⁷ to the
// sum's, since |x| is large only for small terms. The polynomial is accurate to 2e-8.
inline float exponential_term(float x) {
  constexpr float rounder = 12582912.0f, least = -86.5f;
  float shifted = fused(x, log2_e, rounder);
  float f = fused(x, log2_e, rounder - shifted);
  float y =
      polynomial(f, 0.000154614449f, 0.00134004280f, 0.00961805694f, 0.0555032715f, 0.240226507f, 0.693147182f, 1.0f);
  float result = float_of(bits_of(y) + (bits_of(shifted) << 23));
  return x < least ? 0.0f : result;
}

inline double exponential_term(double x) { return exponential(x); }

} // namespace orchard::ORCHARD_ISA
