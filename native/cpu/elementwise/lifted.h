// e^-v for v ≥ 0, scaled by 2^64 ("lifted"). It is a factor of results that are tiny far from 0. With the scale, it is
// a normal number up to v = 130, and a single addition sets its exponent. The last operation of a formula removes the
// scale, so a subnormal result is rounded only once.
//
// e^-v = 2^n·e^r with n = -v/ln 2 rounded and r = -v - n·ln 2. Adding 1.5·2^23 + 64 rounds to an integer and leaves n +
// 64 in the low bits, from which it is added to the exponent of e^r. NaN may not be preserved: callers use v again in a
// later product or sum.
#pragma once

#include "math.h"

namespace orchard::ORCHARD_ISA {

// The factor that removes the scale. float64 is not scaled.
template <class Number> constexpr Number lowered = 1;
template <> inline constexpr float lowered<float> = 0x1p-64f;

constexpr float lifting_rounder = 12582912.0f + 64.0f;

inline float lifted_by(float power, float shifted) { return float_of(bits_of(power) + (bits_of(shifted) << 23)); }

// Computes e^-v from r and from n + 64, which is in the low bits of `shifted`.
inline float lifted_exp(float r, float shifted) {
  return lifted_by(polynomial(r, 0.00139345415f, 0.00836986955f, 0.0416664556f, 0.166664988f, 0.5f, 1.0f, 1.0f),
                   shifted);
}

inline float lifted_exp_of_negative(float v) {
  float shifted = fused(v, -log2_e, lifting_rounder);
  return lifted_exp(reduced_by_ln2(-v, shifted - lifting_rounder), shifted);
}
inline double lifted_exp_of_negative(double v) { return exp(-v); }

} // namespace orchard::ORCHARD_ISA
