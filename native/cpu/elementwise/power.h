// Powers of float32: |x|^y = 2^(y·log2 |x|). The product with the logarithm can be as large as 150, so the logarithm
// needs 33 bits for the result to have float32's accuracy. It is stored as two float32 if multiply-add is fused, else
// as a float64. Results are within 3 units in the last place.
#pragma once

#include "math.h"
#include "tuning.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {

constexpr float smallest_normal = 1.17549435e-38f, largest_finite = 3.40282347e38f;

#if defined(__FMA__) || defined(__aarch64__)

// The sum of two float32; the second is smaller than the last place of the first.
struct WideLog2 {
  float high, low;
};

// log2 of 2^-lift times a positive normal number. For 0 it is so low that its product with any exponent that is not
// tiny acts like -∞. x = 2^e·m with m from √½ to √2; with s = (m - 1)/(m + 1), log2 m = 2 log2(e)·(s + s³/3 + s⁵/5 +
// …). The rounding errors of s, and of the sum of e and the first term, are kept; the remaining terms are less than
// 2^-6 of s.
inline WideLog2 wide_log2(float x, float lift) {
  constexpr float first = 2.88539004f, first_rest = 3.85192598e-08f, of_zero = -1e35f; // 2 log2(e) in two parts
  uint32_t bits = bits_of(x);
  int32_t e = int32_t(bits - 0x3f3504f3) >> 23;
  float m = float_of(bits - (uint32_t(e) << 23)), whole = bits == 0 ? of_zero : float(e) - lift;
  float f = m - 1.0f, d = m + 1.0f, d_rest = m - (d - 1.0f), inverse = 1.0f / d;
  float s = f * inverse, s_rest = fused(-s, d_rest, fused(-s, d, f)) * inverse, z = s * s;
  float further = fused(z, polynomial(z, 0.336595774f, 0.411900967f, 0.577079773f, 0.961796701f), first_rest);
  float sum = fused(s, first, whole), sum_rest = fused(s, first, whole - sum);
  float rest = fused(s, further, fused(s_rest, fused(z, first, first), sum_rest));
  float high = sum + rest;
  return {high, rest - (high - sum)};
}

// 2^(y·l) = 2^n·2^r, multiplied in two steps, since 2^n may be out of range. Adding 1.5·2^23 leaves n in the low bits.
// n is clamped to values for which the result is 0 or infinite for every r, since r is meaningless then.
inline float exp2_of_product(float y, WideLog2 l) {
  constexpr float rounder = 12582912.0f;
  constexpr int32_t of_zero = 0x4b400000, least = of_zero - 152, most = of_zero + 130;
  int32_t n = std::min(std::max(int32_t(bits_of(fused(y, l.high, rounder))), least), most);
  float r = fused(y, l.low, fused(y, l.high, rounder - float_of(uint32_t(n))));
  float kept = absolute(r) <= 1.0f ? r : 0.0f;
  float power =
      polynomial(kept, 0.000154541616f, 0.0013392017f, 0.00961808022f, 0.0555035509f, 0.240226507f, 0.693147182f, 1.0f);
  uint32_t half = uint32_t(n) >> 1;
  return float_of(bits_of(power) + (half << 23)) * float_of((uint32_t(n) - half + 127) << 23);
}

// x^y for elements that has_plain_power accepts. Two loops have shorter dependency chains than one, which allows more
// instruction-level parallelism.
inline void plain_powers(const float *__restrict x, const float *__restrict y, float *__restrict out, int64_t count) {
  float high[tuning::elementwise::power_tile], low[tuning::elementwise::power_tile];
  for (int64_t start = 0; start < count; start += tuning::elementwise::power_tile) {
    int64_t length = std::min(tuning::elementwise::power_tile, count - start);
    for (int64_t i = 0; i < length; i++) {
      WideLog2 l = wide_log2(x[start + i], 0.0f);
      high[i] = l.high;
      low[i] = l.low;
    }
    for (int64_t i = 0; i < length; i++) out[start + i] = exp2_of_product(y[start + i], {high[i], low[i]});
  }
}

// a^y for a ≥ 0, with the same bits as plain_powers where that applies. The result is unspecified for NaN, and for 0
// and infinity to the power of 0.
inline float power_of_magnitude(float a, float y) {
  bool is_subnormal = a < smallest_normal;
  WideLog2 l = wide_log2(is_subnormal ? a * 16777216.0f : a, is_subnormal ? 24.0f : 0.0f);
  bool is_special = (a == 0.0f) | (a == infinity);
  float special = a == 0.0f ? -infinity : infinity;
  float limited = with_sign(float_of(std::min(bits_of(absolute(y)), bits_of(largest_finite))), y);
  return exp2_of_product(limited, {is_special ? special : l.high, is_special ? 0.0f : l.low});
}

#else

// log2 of a positive float, also a subnormal one, which is a normal number in float64; ±infinity for 0 and infinity.
inline double wide_log2(float x) {
  double wide = x;
  uint64_t bits;
  std::memcpy(&bits, &wide, sizeof bits);
  int32_t e = int32_t(bits >> 32) - 0x3fe6a09e;
  e >>= 20;
  bits -= uint64_t(int64_t(e)) << 52;
  double m;
  std::memcpy(&m, &bits, sizeof m);
  double s = (m - 1.0) / (m + 1.0), z = s * s;
  double series = polynomial(z, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0);
  double finite = double(e) + 2.88539008177792681472 * s * series;
  return x == 0.0f ? -__builtin_inf() : x == infinity ? __builtin_inf() : finite;
}

inline float exp2_of_wide(double t) {
  double limited = t > 200.0 ? 200.0 : t < -200.0 ? -200.0 : t;
  double n = to_whole(limited), r = (limited - n) * 0.693147180559945309417;
  double p = polynomial(r, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0);
  uint64_t bits = uint64_t(int64_t(int32_t(n == n ? n : 0.0)) + 1023) << 52;
  double power;
  std::memcpy(&power, &bits, sizeof power);
  return float(p * power);
}

inline float power_of_magnitude(float a, float y) { return exp2_of_wide(double(y) * wide_log2(a)); }
inline void plain_powers(const float *__restrict x, const float *__restrict y, float *__restrict out, int64_t count) {
  for (int64_t i = 0; i < count; i++) out[i] = power_of_magnitude(x[i], y[i]);
}

#endif

// Returns whether x is 0 or a positive normal number, and y is finite and not tiny.
inline bool has_plain_power(float x, float y) {
  constexpr uint32_t normal = 0x00800000, infinite = 0x7f800000, tiny = 0x0da24260; // 1e-30
  bool is_plain_base = (bits_of(x) == 0) | (bits_of(x) - normal < infinite - normal);
  return is_plain_base & ((bits_of(y) & 0x7fffffff) - tiny < infinite - tiny);
}

// Like C's pow.
inline float pow(float x, float y) {
  float a = absolute(x), magnitude = power_of_magnitude(a, y), half = 0.5f * y;
  bool is_whole = std::nearbyint(y) == y; // large numbers are all even integers
  bool is_odd = is_whole && std::nearbyint(half) != half;
  bool is_negative = bits_of(x) >> 31;
  float result = is_odd && is_negative ? -magnitude : magnitude;
  result = is_negative && !is_whole && a != 0.0f && a != infinity ? not_a_number : result;
  result = x == x && y == y ? result : not_a_number;
  bool is_one = y == 0.0f || x == 1.0f || (x == -1.0f && absolute(y) == infinity);
  return is_one ? 1.0f : result;
}

inline double pow(double x, double y) { return std::pow(x, y); }

} // namespace orchard::ORCHARD_ISA
