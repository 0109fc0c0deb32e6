// Quantizes 32 adjacent values of x to 8 bits: computes their scale and levels.
#pragma once

#include "../dtypes.h"

#include <algorithm>
#include <limits>

namespace orchard::ORCHARD_ISA {

constexpr uint32_t infinity_bits = 0x7f800000;

struct PartScale {
  float scale, inverse;
};

// Returns the scale, given the bits of the largest magnitude.
inline PartScale scale_of(uint32_t most) {
  if (most >= infinity_bits) return {std::numeric_limits<float>::quiet_NaN(), 0};
  const float scale = float_of(most) / 127.0f;
  if (scale < std::numeric_limits<float>::min()) return {0, 0};
  return {scale, 1.0f / scale};
}

// Magnitudes are ordered as their bits are.
constexpr uint32_t magnitude_bits = 0x7fffffff;

inline PartScale scale_of(const float *x, int64_t count) {
  uint32_t most = 0;
  for (int64_t i = 0; i < count; i++) most = std::max(most, bits_of(x[i]) & magnitude_bits);
  return scale_of(most);
}

// Rounds to the nearest integer, ties to even: adding `shift` leaves no bits for a fraction.
inline float rounded(float value) {
  constexpr float shift = 12582912.0f; // 1.5 · 2^23
  return (value + shift) - shift;
}

// Returns −127 to 127; 0 if `inverse` is 0, as it is for values that are not finite.
inline int8_t level_of(float value, float inverse) {
  return inverse == 0 ? int8_t(0) : int8_t(int32_t(rounded(value * inverse)));
}

} // namespace orchard::ORCHARD_ISA
