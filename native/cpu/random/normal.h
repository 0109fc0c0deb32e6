// The normal and exponential distributions from random words: the same operations in the same order as in
// src/random/normal.ts, which explains them, and in kernels/random/normal.h. Without branches, so that loops are
// vectorized.
#pragma once

#include "../dtypes.h"

#include <cmath>
#include <cstdint>

namespace orchard::ORCHARD_ISA {

// The compiler may fuse only operations that are written as fused.
static_assert(sizeof(float) == 4 && sizeof(double) == 8);

inline uint64_t bits_of(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline double double_of(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// a · b + c, rounded once. Without the instruction, the product is exact in double, and the sum is rounded to odd: if
// it is inexact, to the adjacent number with an odd last bit. Then rounding it to float gives the same result as
// rounding once.
inline float fused(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
  return __builtin_fmaf(a, b, c);
#else
  double product = double(a) * double(b);
  double sum = product + double(c);
  double shifted = sum - product;
  double error = (product - (sum - shifted)) + (double(c) - shifted);
  uint64_t bits = bits_of(sum);
  uint64_t outward = (error > 0) == (sum > 0) ? 1 : ~uint64_t(0);
  uint64_t odd = bits + ((bits & 1) != 0 ? 0 : outward);
  return float(double_of(error < 0 || error > 0 ? odd : bits));
#endif
}

template <int count> inline float horner(float x, const float (&coefficients)[count]) {
  float value = coefficients[0];
#pragma GCC unroll 16
  for (int at = 1; at < count; at++) value = fused(value, x, coefficients[at]);
  return value;
}

inline float logarithm(float x, float exponent) {
  constexpr float coefficients[] = {7.0376836292e-2f,  -1.151461031e-1f,  1.167699874e-1f,
                                    -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                                    2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
  float square = x * x;
  float tail = (x * square) * horner(x, coefficients);
  tail = fused(exponent, -2.1219444e-4f, tail);
  tail = fused(-0.5f, square, tail);
  return fused(exponent, 0.693359375f, x + tail);
}

// ln(value · 2^scale)
inline float logarithm_of(float value, int32_t scale) {
  int32_t bits = int32_t(bits_of(value));
  int32_t exponent = (bits - 0x3f3504f3) >> 23;
  return logarithm(float_of(uint32_t(bits - exponent * (1 << 23))) - 1.0f, float(exponent + scale));
}

// −ln u
inline float negative_log(uint32_t word) {
  bool is_large = word >= (1u << 24);
  uint32_t digits = is_large ? word >> 8 : (word > 0 ? word : 1);
  return -logarithm_of(float(int32_t(digits)), is_large ? -24 : -32);
}

// −ln(1 − u)
inline float exponential(uint32_t word) {
  bool is_large = word >= (1u << 24);
  uint32_t digits = is_large ? word >> 8 : (word > 0 ? word : 1);
  float u = float(int32_t(digits)) * (is_large ? 0x1p-24f : 0x1p-32f);
  float near = logarithm(-u, 0.0f);
  float far = logarithm_of(1.0f - u, 0);
  return -(u < 0.25f ? near : far);
}

template <class Number> struct Point {
  Number x, y;
};

// Rotates a point on the circle by quarter turns.
template <class Number> inline Point<Number> turned(uint32_t quarter, Number cosine, Number sine) {
  bool is_odd = (quarter & 1) != 0;
  Number x = is_odd ? sine : cosine;
  Number y = is_odd ? cosine : sine;
  return {((quarter + 1) & 2) != 0 ? -x : x, (quarter & 2) != 0 ? -y : y};
}

inline Point<float> cosine_and_sine(uint32_t word) {
  constexpr float sines[] = {-1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f};
  constexpr float cosines[] = {2.443315711809948e-5f, -1.388731625493765e-3f, 4.166664568298827e-2f};
  constexpr float radians = float(6.283185307179586 / 67108864.0);
  uint32_t quarter = (word + (1u << 29)) >> 30;
  int32_t remainder = int32_t(word - (quarter << 30)) >> 6;
  float x = float(remainder) * radians;
  float square = x * x;
  float sine = fused(x * square, horner(square, sines), x);
  float cosine = fused(square * square, horner(square, cosines), fused(-0.5f, square, 1.0f));
  return turned(quarter, cosine, sine);
}

inline Point<float> normal_pair(uint32_t first, uint32_t second) {
  float radius = std::sqrt(2.0f * negative_log(first));
  Point<float> point = cosine_and_sine(second);
  return {radius * point.x, radius * point.y};
}

// ---------------------------------------------------------------- float64

inline double uniform64(uint32_t word, uint32_t low) {
  return double(int64_t(uint64_t(word) << 21 | low >> 11)) * 0x1p-53;
}

inline double logarithm64(double value) {
  int64_t bits = int64_t(bits_of(value));
  int64_t exponent = ((bits >> 32) - 0x3fe6a09e) >> 20;
  double k = double(int32_t(exponent));
  double f = double_of(uint64_t(bits) - (uint64_t(exponent) << 52)) - 1.0;
  double half_square = 0.5 * f * f;
  double s = f / (2.0 + f);
  double z = s * s;
  double w = z * z;
  double even = w * (3.999999999940941908e-1 + w * (2.222219843214978396e-1 + w * 1.531383769920937332e-1));
  double odd = z * (6.66666666666673513e-1 +
                    w * (2.857142874366239149e-1 + w * (1.818357216161805012e-1 + w * 1.479819860511658591e-1)));
  double correction = s * (half_square + (odd + even)) + k * 1.90821492927058770002e-10;
  return k * 6.9314718036912381649e-1 - (half_square - correction - f);
}

inline Point<double> cosine_and_sine64(uint32_t word, uint32_t low) {
  uint32_t quarter = (word + (1u << 29)) >> 30;
  double remainder = double(int32_t(word - (quarter << 30))) + double(int32_t(low >> 11)) * 0x1p-21;
  double x = remainder * (6.283185307179586 / 4294967296.0);
  double z = x * x;
  double sine = x + x * z *
                        (-1.66666666666666324348e-1 +
                         z * (8.33333333332248946124e-3 +
                              z * (-1.98412698298579493134e-4 +
                                   z * (2.75573137070700676789e-6 +
                                        z * (-2.50507602534068634195e-8 + z * 1.58969099521155010221e-10)))));
  double cosine =
      1.0 - (0.5 * z - z * z *
                           (4.16666666666666019037e-2 +
                            z * (-1.38888888888741095749e-3 +
                                 z * (2.48015872894767294178e-5 +
                                      z * (-2.75573143513906633035e-7 +
                                           z * (2.08757232129817482790e-9 + z * -1.13596475577881948265e-11))))));
  return turned(quarter, cosine, sine);
}

inline Point<double> normal_pair64(uint32_t first, uint32_t first_low, uint32_t second, uint32_t second_low) {
  double u = uniform64(first, first_low);
  double radius = std::sqrt(-2.0 * logarithm64(u < 0x1p-53 ? 0x1p-53 : u));
  Point<double> point = cosine_and_sine64(second, second_low);
  return {radius * point.x, radius * point.y};
}

} // namespace orchard::ORCHARD_ISA
