// Elementary functions of float64 without branches, like those of float32 in math.h, which includes this file. Loops
// that call the C library are not vectorized. Errors are within 2 units in the last place (log1p, tanh: 3).
#pragma once

#include <cstring>

namespace orchard::ORCHARD_ISA {

inline uint64_t bits_of(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline double float_of(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

namespace float64 {

constexpr double infinity = __builtin_inf(), log2_e = 1.44269504088896340736;
// ln 2, split into two parts: the product of the first part and an integer below 2^20 is exact.
constexpr double ln2 = 0.693147180559945309417;
constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;

// 2^n for an integer n from -1022 to 1023
inline double power_of_two(int32_t n) { return float_of(uint64_t(int64_t(n) + 1023) << 52); }
// x·2^n for an integer n from -2044 to 2046, in two steps, since 2^n may be out of range.
inline double scaled(double x, int32_t n) {
  const int32_t half = n >> 1;
  return x * power_of_two(half) * power_of_two(n - half);
}
inline int32_t integer_of(double n) { return int32_t(n == n ? n : 0.0); }
inline double bounded(double x, double least, double most) {
  const double above = x < least ? least : x;
  return above > most ? most : above;
}

inline double reduced_by_ln2(double x, double n) { return fused(n, -ln2_low, fused(n, -ln2_high, x)); }

// e^r - 1 for |r| ≤ ln 2 / 2, by Taylor's series, whose first omitted term is below 2^-57.
inline double expm1_reduced(double r) {
  const double p = polynomial(r, 1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
                              1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5);
  return fused(p * r, r, r);
}

// ln(1 + f) for √½ - 1 ≤ f ≤ √2 - 1, with s = f/(2 + f): f - (f²/2 - s (f²/2 + R(s²))). Source: FreeBSD's e_log.c,
// whose R is a minimax polynomial.
struct Logarithm {
  double e, f, half_square, tail; // ln x = e·ln 2 + f - (half_square - tail)
};
inline Logarithm logarithm(double x) {
  const bool is_subnormal = x < 2.2250738585072014e-308;
  const uint64_t bits = bits_of(is_subnormal ? x * 18014398509481984.0 : x);
  const uint64_t shifted = bits - 0x3fe6a09e667f3bcd; // the bits of √½
  // The sign bit is moved away first: AVX2 has no arithmetic shift of 64-bit integers.
  const int64_t e = int64_t((shifted + (uint64_t(1) << 63)) >> 52) - 2048;
  const double f = float_of(bits - (uint64_t(e) << 52)) - 1.0;
  const double s = f / (2.0 + f), z = s * s;
  const double r = z * polynomial(z, 1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
                                  2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01,
                                  6.666666666666735130e-01);
  const double half_square = 0.5 * f * f;
  return {double(int32_t(e)) - (is_subnormal ? 54.0 : 0.0), f, half_square, s * (half_square + r)};
}

// Replaces the result if x is not a positive finite number.
inline double or_special(double result, double x) {
  const double special = x == 0.0 ? -infinity : x == infinity ? infinity : __builtin_nan("");
  return x > 0.0 && x < infinity ? result : special;
}

} // namespace float64

inline double exp(double x) {
  const double limited = float64::bounded(x, -746.0, 710.0);
  const double n = to_whole(limited * float64::log2_e);
  return float64::scaled(float64::expm1_reduced(float64::reduced_by_ln2(limited, n)) + 1.0, float64::integer_of(n));
}

inline double exp2(double x) {
  const double limited = float64::bounded(x, -1076.0, 1025.0);
  const double n = to_whole(limited);
  return float64::scaled(float64::expm1_reduced((limited - n) * float64::ln2) + 1.0, float64::integer_of(n));
}

// Like the function of the same name in kernels/formulas/elementary.h.
inline double expm1(double x) {
  const double limited = float64::bounded(x, -40.0, 710.0);
  const double n = to_whole(limited * float64::log2_e);
  const double half_power = float64::power_of_two(float64::integer_of(n) - 1);
  const double q = float64::expm1_reduced(float64::reduced_by_ln2(limited, n));
  const double result = 2.0 * fused(half_power, q, half_power - 0.5);
  return std::fabs(x) < 1e-17 ? x : result;
}

inline double log(double x) {
  const float64::Logarithm l = float64::logarithm(x);
  return float64::or_special(l.e * float64::ln2_high - ((l.half_square - (l.tail + l.e * float64::ln2_low)) - l.f), x);
}

inline double log2(double x) {
  const float64::Logarithm l = float64::logarithm(x);
  return float64::or_special(fused(l.f - (l.half_square - l.tail), float64::log2_e, l.e), x);
}

// See the function of the same name in kernels/formulas/elementary.h.
inline double log1p(double x) {
  const double u = 1.0 + x;
  const double corrected = log(u) * (x / (u - 1.0));
  return u == 1.0 || x == float64::infinity ? x : corrected;
}

// (1 - e^(-2|x|))/(1 + e^(-2|x|))
inline double tanh(double x) {
  const double t = expm1(-2.0 * std::fabs(x));
  return std::copysign(t / (2.0 + t), x);
}

} // namespace orchard::ORCHARD_ISA
