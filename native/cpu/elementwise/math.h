// Elementary functions of float32 without branches, so that compilers vectorize them. kernels/formulas/elementary.h has
// those that Metal's kernels compute in the same way.
//
// Each function reduces its argument to a short interval, on which it evaluates a polynomial: the Chebyshev interpolant
// of the function, with coefficients rounded to float32. Errors are within 2 units in the last place (tan, atan2, tanh,
// sigmoid: 4).
#pragma once

#include "../dtypes.h"

#include <cmath>

namespace orchard::ORCHARD_ISA {

constexpr float infinity = __builtin_inff(), not_a_number = __builtin_nanf("");
constexpr float ln2 = 0.693147181f, log2_e = 1.44269504f, pi = 3.14159265f;
// ln 2, split into two parts (see reduced_by_ln2).
constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;

// a·b + c, rounded once if the instruction set has fused multiply-add.
#if defined(__FMA__) || defined(__aarch64__)
inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
inline float fused(float a, float b, float c) { return a * b + c; }
inline double fused(double a, double b, double c) { return a * b + c; }
#endif

// Evaluates the polynomial with these coefficients, highest power first.
template <class Number, class... Rest> inline Number polynomial(Number x, Number highest, Rest... rest) {
  Number sum = highest;
  ((sum = fused(sum, x, rest)), ...);
  return sum;
}

// x rounded to an integer, ties to even, for |x| < 2^22: adding 1.5 · 2^23 leaves no bits for a fraction.
inline float to_whole(float x) { return (x + 12582912.0f) - 12582912.0f; }
inline double to_whole(double x) { return (x + 6755399441055744.0) - 6755399441055744.0; }

// Converts n, an integral float, to an integer; NaN gives an unspecified integer.
inline int32_t integer_of(float n) { return int32_t(n == n ? n : 0.0f); }

// 2^n for an integer n from -126 to 127
inline float power_of_two(int32_t n) { return float_of(uint32_t(n + 127) << 23); }

// x · 2^n for an integer n from -252 to 254, in two steps, since 2^n may be out of range.
inline float scaled(float x, int32_t n) {
  int32_t half = n >> 1;
  return x * power_of_two(half) * power_of_two(n - half);
}

inline float absolute(float x) { return float_of(bits_of(x) & 0x7fffffff); }
// The magnitude of the first argument with the sign of the second.
inline float with_sign(float magnitude, float sign) {
  return float_of((bits_of(magnitude) & 0x7fffffff) | (bits_of(sign) & 0x80000000));
}

#define ORCHARD_FUNCTION_OF(name)                                                                                      \
  inline float name(float x) { return std::name(x); }                                                                  \
  inline double name(double x) { return std::name(x); }
ORCHARD_FUNCTION_OF(fabs)
ORCHARD_FUNCTION_OF(sqrt)
ORCHARD_FUNCTION_OF(floor)
ORCHARD_FUNCTION_OF(ceil)
ORCHARD_FUNCTION_OF(rint)
ORCHARD_FUNCTION_OF(trunc)
#undef ORCHARD_FUNCTION_OF
template <class T> inline T rsqrt(T x) { return T(1) / std::sqrt(x); }
template <class T> inline bool has_sign(T x) { return std::signbit(x); }
template <class T> inline T copysign(T magnitude, T sign) { return std::copysign(magnitude, sign); }

} // namespace orchard::ORCHARD_ISA

#include "wide.h"

namespace orchard::ORCHARD_ISA {

// ---------------------------------------------------------------- float64: other functions are the C library's

#define ORCHARD_LIBRARY_FUNCTION(name)                                                                                 \
  inline double name(double x) { return std::name(x); }
ORCHARD_LIBRARY_FUNCTION(log10)
ORCHARD_LIBRARY_FUNCTION(erf)
ORCHARD_LIBRARY_FUNCTION(sin)
ORCHARD_LIBRARY_FUNCTION(cos)
ORCHARD_LIBRARY_FUNCTION(tan)
#undef ORCHARD_LIBRARY_FUNCTION
inline double atan2(double y, double x) { return std::atan2(y, x); }

inline float exp(float x);
inline float log(float x);

} // namespace orchard::ORCHARD_ISA

#define ORCHARD_FORMULAS orchard::ORCHARD_ISA
#include "../../../kernels/formulas/elementary.h"

namespace orchard::ORCHARD_ISA {

// ---------------------------------------------------------------- exponentials: x = n·ln 2 + r, e^x = 2^n·e^r

inline float exp(float x) {
  float limited = bounded(x, -105.0f, 89.0f);
  float n = to_whole(limited * log2_e);
  return scaled(expm1_reduced(reduced_by_ln2(limited, n)) + 1.0f, integer_of(n));
}

inline float exp2(float x) {
  float limited = bounded(x, -151.0f, 129.0f);
  float n = to_whole(limited);
  return scaled(expm1_reduced((limited - n) * ln2) + 1.0f, integer_of(n));
}

// (1 - e^(-2|x|))/(1 + e^(-2|x|))
inline float tanh(float x) {
  float t = expm1(-2.0f * absolute(x));
  return with_sign(t / (2.0f + t), x);
}

// ---------------------------------------------------------------- logarithms: x = 2^e·(1 + f), f from √½ - 1 to √2 - 1

struct Logarithm {
  float e, of_f; // e and ln(1 + f)
};

inline Logarithm logarithm(float x) {
  bool is_subnormal = x < 1.17549435e-38f;
  uint32_t bits = bits_of(is_subnormal ? x * 8388608.0f : x);
  int32_t e = int32_t(bits - 0x3f3504f3) >> 23;
  float f = float_of(bits - (uint32_t(e) << 23)) - 1.0f;
  float p = polynomial(f, -0.0620157011f, 0.105309717f, -0.106462188f, 0.110377699f, -0.124507390f, 0.142865255f,
                       -0.166680023f, 0.200000107f, -0.249999896f, 0.333333343f);
  float square = f * f;
  return {float(e - (is_subnormal ? 23 : 0)), f + fused(p * f, square, -0.5f * square)};
}

// Replaces the result if x is not a positive finite number.
inline float or_special(float result, float x) {
  float special = x == 0.0f ? -infinity : x == infinity ? infinity : not_a_number;
  return x > 0.0f && x < infinity ? result : special;
}

inline float log(float x) {
  Logarithm l = logarithm(x);
  return or_special(fused(l.e, ln2_high, fused(l.e, ln2_low, l.of_f)), x);
}

inline float log2(float x) {
  Logarithm l = logarithm(x);
  return or_special(fused(l.of_f, log2_e, l.e), x);
}

inline float log10(float x) {
  constexpr float high = 0.301025391f, low = 4.60503901e-6f, log10_e = 0.434294482f; // log10 2, split into two parts
  Logarithm l = logarithm(x);
  return or_special(fused(l.e, high, fused(l.e, low, l.of_f * log10_e)), x);
}

// ---------------------------------------------------------------- erf

// x + x·P(x²) for |x| ≤ 1, else 1 - e^(-x²)·Q(|x| - 2), which rounds to 1 from 3.93 on.
inline float erf(float x) {
  constexpr float rounder = 12582912.0f;
  float a = absolute(x), t = at_most(a, 4.0f), s = a * a, v = t - 2.0f;
  float p = polynomial(s, 0.0000787587487f, -0.000801686430f, 0.00518908724f, -0.0268542115f, 0.112835944f,
                       -0.376126260f, 0.128379166f);
  float q = polynomial(v, 8.1058206e-05f, -0.000261586189f, 0.000509427045f, -0.00175223919f, 0.00554593001f,
                       -0.015458473f, 0.0417757593f, -0.106803417f, 0.255395681f);
  float shifted = fused(t * t, -log2_e, rounder), r = fused(shifted - rounder, -ln2, -t * t);
  float e = polynomial(r, 0.00139345415f, 0.00836986955f, 0.0416664556f, 0.166664988f, 0.5f, 1.0f, 1.0f);
  float tail = fused(float_of(bits_of(e) + (bits_of(shifted) << 23)), -q, 1.0f);
  return a < 1.0f ? fused(x, p, x) : with_sign(tail, x);
}

// ---------------------------------------------------------------- circular functions: x = q·π/2 + r

// The largest argument for which this reduction is accurate: q has 20 bits, so its product with the first 33 bits of
// π/2 is exact.
constexpr float largest_angle = 1.0e6f;

struct Angle {
  float sine, cosine; // of r
  int32_t quadrant;
};

// For -π/4 ≤ r ≤ π/4.
inline Angle angle_in(int32_t quadrant, float r) {
  float s = r * r;
  float sine = fused(polynomial(s, -0.000195878907f, 0.00833274797f, -0.166666642f) * s, r, r);
  float cosine = fused(polynomial(s, 0.0000245479423f, -0.00138883025f, 0.0416666642f) * s, s, fused(s, -0.5f, 1.0f));
  return {sine, cosine, quadrant};
}

inline Angle angle(float x) {
  constexpr double high = 1.57079632673412561417, low = 6.07710050650619224932e-11; // π/2, split into two parts
  double wide = absolute(x) <= largest_angle ? x : 0.0f;
  double q = to_whole(wide * 0.63661977236758134308);
  return angle_in(int32_t(q), float((wide - q * high) - q * low));
}

inline float negated_if(int32_t condition, float x) { return float_of(bits_of(x) ^ uint32_t(condition != 0) << 31); }

inline float sine_of(Angle a) { return negated_if(a.quadrant & 2, a.quadrant & 1 ? a.cosine : a.sine); }
inline float cosine_of(Angle a) { return negated_if((a.quadrant + 1) & 2, a.quadrant & 1 ? a.sine : a.cosine); }

inline float sin(float x) { return sine_of(angle(x)); }
inline float cos(float x) { return cosine_of(angle(x)); }

inline float tan(float x) {
  Angle a = angle(x);
  bool odd = a.quadrant & 1;
  return negated_if(odd, (odd ? a.cosine : a.sine) / (odd ? a.sine : a.cosine));
}

// The smaller of |x| and |y| divided by the larger has an arctangent from 0 to π/4; the octant determines the rest.
inline float atan2(float y, float x) {
  float a = absolute(x), b = absolute(y);
  bool is_steep = b > a;
  float larger = is_steep ? b : a, smaller = is_steep ? a : b;
  float t = larger == 0.0f ? 0.0f : smaller == infinity ? 1.0f : smaller / larger;
  float s = t * t;
  float p = polynomial(s, 0.00148869189f, -0.00914462935f, 0.0263050012f, -0.0489605144f, 0.0703191459f, -0.0893182680f,
                       0.110882618f, -0.142840043f, 0.199999496f, -0.333333343f);
  float first = fused(p * s, t, t);
  float half = is_steep ? 0.5f * pi - first : first;
  float whole = bits_of(x) >> 31 ? pi - half : half;
  return x == x && y == y ? with_sign(whole, y) : not_a_number;
}

} // namespace orchard::ORCHARD_ISA
