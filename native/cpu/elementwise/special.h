// sinc, and the complement and inverse of the error function, for float32 without branches, like math.h, and for
// float64. Errors are within 4 units in the last place (erfc: 6).
#pragma once

#include "gated.h"

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

// sin(πr)/(πr) for |r| ≤ ½, interpolated in r² at Chebyshev points.
inline float sine_quotient(float r) {
  return polynomial(r * r, -0.00223717862f, 0.0261174385f, -0.190747902f, 0.811742187f, -1.64493406f, 1.0f);
}
inline double sine_quotient(double r) {
  return polynomial(r * r, -7.0931258816238045e-09, 2.5300985563134005e-07, -6.975840829271595e-06,
                    0.0001484287872033628, -0.002346081034815316, 0.026147847817611935, -0.19075182412208255,
                    0.8117424252833536, -1.6449340668482264, 1.0);
}

// sin(πx)/(πx) = ±sin(πr)/(πr)·r/x; 1 at 0.
template <class Number> inline Number sinc(Number x) {
  Number a = std::fabs(x);
  Turns<Number> t = turns(a);
  Number value = t.remainder / a * sine_quotient(t.remainder);
  return a == Number(0) ? Number(1) : t.is_odd ? -value : value;
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
inline double erfc(double x) { return std::erfc(x); }

// ---------------------------------------------------------------- erfinv

// x·P(w) with w = -ln(1 - x²): a polynomial in w for w ≤ 5, and in √w beyond. ±infinity at ±1, NaN for |x| > 1. Source:
// M. Giles, "Approximating the erfinv function", GPU Computing Gems, 2012. The polynomials here have one degree more.
inline float erfinv(float x) {
  float w = -log((1.0f - x) * (1.0f + x)), s = w - 2.5f, t = std::sqrt(w) - 3.0f;
  float center = polynomial(s, -8.93192631e-09f, 2.33359678e-08f, 4.68131361e-07f, -3.46398519e-06f, -4.9724199e-06f,
                            0.000218349393f, -0.00125272642f, -0.00417739293f, 0.24664028f, 1.50140941f);
  float tail = polynomial(t, 0.000120385863f, -0.000313715573f, -6.2952633e-05f, 0.00148983696f, -0.00359459501f,
                          0.00568534806f, -0.00763777411f, 0.00944545027f, 1.00167501f, 2.83297682f);
  return absolute(x) == 1.0f ? x * infinity : x * (w < 5.0f ? center : tail);
}

// Halley's method from an initial value within 0.3 %. Above ½ the steps use erfc, which avoids cancellation. Source of
// the initial value: S. Winitzki, "A handy approximation for the error function and its inverse", 2008.
inline double erfinv(double x) {
  double a = std::fabs(x);
  if (!(a < 1.0)) return a == 1.0 ? x * __builtin_inf() : __builtin_nan("");
  constexpr double half_root_of_pi = 0.886226925452758013649, bend = 0.147;
  constexpr double first = 2.0 / (3.14159265358979323846 * bend);
  double l = std::log1p(-a * a), middle = first + 0.5 * l;
  double y = a < 0.1 ? a * half_root_of_pi : std::sqrt(std::sqrt(middle * middle - l / bend) - middle);
  for (int step = 0; step < 3; step++) {
    double off = a < 0.5 ? std::erf(y) - a : (1.0 - a) - std::erfc(y);
    double newton = off * half_root_of_pi * std::exp(y * y);
    y -= newton / (1.0 + y * newton);
  }
  return std::copysign(y, x);
}

// ---------------------------------------------------------------- functions of two arguments

// ln(e^a + e^b), computed so that no exponential overflows.
template <class Number> inline Number logaddexp(Number a, Number b) {
  Number larger = a > b || a != a ? a : b;
  Number distance = a == b ? Number(0) : std::fabs(a - b); // infinity minus infinity would be NaN
  return larger + log1p(exp(-distance));
}

// log2(2^a + 2^b), computed likewise.
template <class Number> inline Number logaddexp2(Number a, Number b) {
  constexpr Number log2_of_e = Number(1.44269504088896340736);
  Number larger = a > b || a != a ? a : b;
  Number distance = a == b ? Number(0) : std::fabs(a - b);
  return larger + log1p(exp2(-distance)) * log2_of_e;
}

// a·ln b; 0 if a is 0, unless b is NaN.
template <class Number> inline Number xlogy(Number a, Number b) {
  Number product = a * log(b);
  return a == Number(0) && b == b ? Number(0) : product;
}

} // namespace orchard::ORCHARD_ISA
