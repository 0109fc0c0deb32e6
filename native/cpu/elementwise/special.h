// sinc, and the complements and inverse of the error function, for float32 without branches, like math.h, and for
// float64. Errors are within 4 units in the last place (erfc: 6).
#pragma once

#include "gated.h"
#include "inverse.h"

namespace orchard::ORCHARD_ISA {

// ---------------------------------------------------------------- sin πx

// A number a ≥ 0 as the sum of an integer n and a remainder r from -½ to ½, which is exact. NaN for infinity.
template <class Number> struct Turns {
  Number remainder;
  bool is_odd; // whether n is odd
};

// Adding 2^23 leaves no bits for a fraction, and makes n's lowest bit the lowest bit of the sum. Larger numbers are
// integers.
inline Turns<float> turns(float a) {
  constexpr float rounder = 8388608.0f;
  float shifted = a + rounder, whole = a < rounder ? shifted - rounder : a;
  return {a - whole, (bits_of(shifted) & 1) != 0};
}
inline Turns<double> turns(double a) {
  double whole = std::nearbyint(a);
  return {a - whole, std::fmod(whole, 2.0) != 0.0};
}

inline double sine_quotient(double r) {
  return polynomial(r * r, -7.0931258816238045e-09, 2.5300985563134005e-07, -6.975840829271595e-06,
                    0.0001484287872033628, -0.002346081034815316, 0.026147847817611935, -0.19075182412208255,
                    0.8117424252833536, -1.6449340668482264, 1.0);
}

// ---------------------------------------------------------------- erfc

// e^(-a²), scaled by 2^64 (lifted.h). The square needs more digits than float32 has, so it is computed with fused
// multiply-add or in float64.
inline float lifted_exp_of_square(float a) {
  float shifted = fused(a * a, -log2_e, lifting_rounder), n = shifted - lifting_rounder;
#if defined(__FMA__) || defined(__aarch64__)
  float r = fused(n, -ln2_low, fused(-a, a, n * -ln2_high));
#else
  float r = float(-double(a) * double(a) - double(n) * 0.693147180559945309417);
#endif
  return lifted_exp(r, shifted);
}

// erfc(a) = 2·Φ(-√2·a) = 2·e^(-a²)·G(√2·a) for a ≥ 0, where G is smooth (gated.h). It is 0 from 10.7 on.
inline float erfc(float x) {
  float a = at_most(absolute(x), 10.7f);
  float tail = 2.0f * lifted_exp_of_square(a) * NormalShare::factor(1.41421356f * a);
  return x < 0.0f ? fused(tail, -lowered<float>, 2.0f) : tail * lowered<float>;
}

// ---------------------------------------------------------------- functions that C++ and Metal share

// a² minus its rounded value `square`. For float64, see wide_functions.h.
#if defined(__FMA__) || defined(__aarch64__)
inline float square_error(float a, float square) { return fused(a, a, -square); }
#else
inline float square_error(float a, float square) { return float(double(a) * double(a) - double(square)); }
#endif

inline float log2_of_e(float) { return log2_e; }
inline double log2_of_e(double) { return 1.44269504088896340736; }

} // namespace orchard::ORCHARD_ISA

#include "../../../kernels/formulas/special.h"

namespace orchard::ORCHARD_ISA {

// erf⁻¹(x) = Φ⁻¹((1 + x)/2)/√2 by ndtri's rational functions, then a step of Halley's method, which removes most of
// their rounding errors. x/2 is exact, and so is (1 - |x|)/2 in the tails. From ½ on, the step uses erfc, which avoids
// cancellation.
inline double erfinv(double x) {
  constexpr double root_of_half = 0.707106781186547524401, half_root_of_pi = 0.886226925452758013649;
  double a = std::fabs(x), share = 0.5 * (1.0 - a), r = std::sqrt(-log(share));
  double tail = r <= 5.0 ? ndtri_near(r - 1.6) : ndtri_far(at_most(r, 7.0) - 5.0);
  double y = root_of_half * (a <= 0.85 ? ndtri_middle(0.5 * a) : tail);
  double off = a < 0.5 ? float64::error_function(y) - a : (1.0 - a) - erfc(y);
  double newton = off * half_root_of_pi * exp(y * y), better = y - newton / (1.0 + y * newton);
  return std::copysign(share == 0.0 ? __builtin_inf() : better, x);
}

} // namespace orchard::ORCHARD_ISA
