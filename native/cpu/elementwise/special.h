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

// ---------------------------------------------------------------- erfinv

// Halley's method from an initial value within 0.3 %. Above ½ the steps use erfc, which avoids cancellation. Source of
// the initial value: S. Winitzki, "A handy approximation for the error function and its inverse", 2008.
inline double erfinv(double x) {
  double a = std::fabs(x);
  if (!(a < 1.0)) return a == 1.0 ? x * __builtin_inf() : __builtin_nan("");
  constexpr double half_root_of_pi = 0.886226925452758013649, bend = 0.147;
  constexpr double first = 2.0 / (3.14159265358979323846 * bend);
  double l = log1p(-a * a), middle = first + 0.5 * l;
  double y = a < 0.1 ? a * half_root_of_pi : std::sqrt(std::sqrt(middle * middle - l / bend) - middle);
  for (int step = 0; step < 3; step++) {
    double off = a < 0.5 ? float64::error_function(y) - a : (1.0 - a) - erfc(y);
    double newton = off * half_root_of_pi * exp(y * y);
    y -= newton / (1.0 + y * newton);
  }
  return std::copysign(y, x);
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
