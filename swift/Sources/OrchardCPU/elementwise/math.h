// Elementary functions of float32 as straight code without branches, which compilers turn into vectors; of float64 the C library's.
//
// Polynomials are Chebyshev interpolants of the function on the reduced interval (scripts/fit.ts), rounded to float32. The bounds in
// units in the last place (ulp) hold against float64 for every exponent; test/ops/elementwise.accuracy.test.ts measures them.
#pragma once

#include "../dtypes.h"

#include <cmath>

namespace orchard::ORCHARD_ISA {

// a·b + c, rounded once where the instruction set can.
inline float fused(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

// The polynomial with these coefficients, the highest first.
template <class... Rest> inline float polynomial(float x, float highest, Rest... rest) {
  float sum = highest;
  ((sum = fused(sum, x, rest)), ...);
  return sum;
}

// x rounded to a whole number, ties to even, for |x| < 2^22: adding 1.5 · 2^23 leaves no bits for the fraction.
inline float to_whole(float x) {
  constexpr float magic = 12582912.0f;
  return (x + magic) - magic;
}

// 2^n for a whole n from -126 to 127
inline float power_of_two(int32_t n) { return float_of(uint32_t(n + 127) << 23); }

// x · 2^n for a whole n from -252 to 254, rounded once: in two steps, since 2^n may be no float.
inline float scaled(float x, int32_t n) {
  int32_t half = n >> 1;
  return x * power_of_two(half) * power_of_two(n - half);
}

inline float select(bool condition, float yes, float no) { return condition ? yes : no; }

// ln 2 in two parts; the product of the first with a whole number below 2^12 is exact.
constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
constexpr float log2_e = 1.44269504f;

// e^r for |r| ≤ ln 2 / 2
inline float exp_reduced(float r) {
  float p = polynomial(r, 1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f);
  return fused(p * r, r, r) + 1.0f;
}

inline float exp(float x) {
  float bounded = x > 89.0f ? 89.0f : x < -105.0f ? -105.0f : x; // NaN stays
  float n = to_whole(bounded * log2_e);
  float r = fused(n, -ln2_low, fused(n, -ln2_high, bounded));
  float finite = n == n ? n : 0.0f;
  return scaled(exp_reduced(r), int32_t(finite));
}
inline double exp(double x) { return std::exp(x); }

} // namespace orchard::ORCHARD_ISA
