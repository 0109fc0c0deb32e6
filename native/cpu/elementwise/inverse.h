// Inverse circular functions, hyperbolic functions and their inverses. For float32, without branches, like math.h;
// wide_functions.h has those of float64. Errors are within 4 units in the last place.
#pragma once

#include "wide_functions.h"

namespace orchard::ORCHARD_ISA {

// ---------------------------------------------------------------- inverse circular functions

// asin s for 0 ≤ s ≤ ½, with z = s²: (asin s/s − 1)/s² is interpolated at Chebyshev points.
inline float arcsine_in(float s, float z) {
  float p = polynomial(z, 0.0336908475f, 0.0171492379f, 0.0311006624f, 0.0445994027f, 0.0750009418f, 0.166666657f);
  return fused(p * z, s, s);
}

// For |x| > ½, acos |x| = 2·asin √((1 − |x|)/2), where 1 − |x| is exact. NaN for |x| > 1.
inline float asin(float x) {
  float a = absolute(x);
  bool is_large = a > 0.5f;
  float z = is_large ? 0.5f * (1.0f - a) : a * a, s = is_large ? std::sqrt(z) : a;
  float angle = arcsine_in(s, z);
  return with_sign(is_large ? fused(-2.0f, angle, 0.5f * pi) : angle, x);
}

inline float acos(float x) {
  float a = absolute(x);
  bool is_large = a > 0.5f, is_negative = x < 0.0f;
  float z = is_large ? 0.5f * (1.0f - a) : a * a, s = is_large ? std::sqrt(z) : a;
  float angle = arcsine_in(s, z);
  float large = is_negative ? fused(-2.0f, angle, pi) : 2.0f * angle;
  float small = 0.5f * pi - (is_negative ? -angle : angle);
  return is_large ? large : small;
}

inline float atan(float x) { return atan2(x, 1.0f); }

// ---------------------------------------------------------------- hyperbolic functions

// e^x/2, which is finite for every x for which sinh and cosh are.
inline float half_exp(float x) {
  float limited = bounded(x, -105.0f, 90.0f);
  float n = to_whole(limited * log2_e);
  return scaled(expm1_reduced(reduced_by_ln2(limited, n)) + 1.0f, integer_of(n) - 1);
}

// A polynomial for |x| ≤ 1, else (e^a - e^-a)/2.
inline float sinh(float x) {
  float a = absolute(x), z = a * a, half = half_exp(a);
  float small = fused(polynomial(z, 2.80628024e-06f, 0.000198381022f, 0.00833333936f, 0.166666672f) * z, a, a);
  return with_sign(a < 1.0f ? small : half - 0.25f / half, x);
}

inline float cosh(float x) {
  float half = half_exp(absolute(x));
  return half + 0.25f / half;
}

// From here on, adding or subtracting 1 does not change the square of a float.
constexpr float largest_squared = 16777216.0f;

// ln(a + √(a² + 1)) = ln(1 + a + a²/(1 + √(a² + 1))), which is accurate near 0.
inline float asinh(float x) {
  float a = absolute(x), square = a * a;
  bool is_large = a > largest_squared;
  float small = log1p(is_large ? 1.0f : a + square / (1.0f + std::sqrt(square + 1.0f)));
  return with_sign(is_large ? log(a) + ln2 : small, x);
}

// ln(x + √(x² - 1)) = ln(1 + t + √(t·(t + 2))) with t = x - 1. NaN for x < 1.
inline float acosh(float x) {
  bool is_large = x > largest_squared;
  float t = (is_large ? 1.0f : x) - 1.0f;
  float small = log1p(t + std::sqrt(t * (t + 2.0f)));
  float result = is_large ? log(x) + ln2 : small;
  return x < 1.0f ? not_a_number : result;
}

// ½ ln((1 + a)/(1 - a)). NaN for |x| > 1.
inline float atanh(float x) {
  float a = absolute(x);
  return with_sign(0.5f * log1p(2.0f * a / (1.0f - a)), x);
}

// √(x² + y²), computed in float64 so that no square overflows. Infinite if x or y is, even if the other is NaN.
inline float hypot(float x, float y) {
  float length = float(std::sqrt(double(x) * double(x) + double(y) * double(y)));
  return absolute(x) == infinity || absolute(y) == infinity ? infinity : length;
}

} // namespace orchard::ORCHARD_ISA
