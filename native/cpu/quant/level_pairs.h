// The levels of two parts of weights, in the same order as x's levels in `ByteRows`.
#pragma once

#include "levels.h"

#if defined(__AVX2__)

namespace orchard::ORCHARD_ISA {

// Values [0, 16) of both parts, and values [16, 32) of both parts.
struct BytePair {
  __m256i first, second;
};

inline BytePair pair_of(__m256i left, __m256i right) {
  return {_mm256_permute2x128_si256(left, right, 0x20), _mm256_permute2x128_si256(left, right, 0x31)};
}

// With two blocks side by side, their 4-bit levels are already in the order of BytePair.
inline BytePair nibble_pair(const uint8_t *left, const uint8_t *right) {
  const __m256i both = _mm256_set_m128i(bytes16(right), bytes16(left)), mask = _mm256_set1_epi8(15);
  return {_mm256_and_si256(both, mask), _mm256_and_si256(_mm256_srli_epi16(both, 4), mask)};
}

inline BytePair byte_pair(const uint8_t *left, const uint8_t *right) {
  return {_mm256_set_m128i(bytes16(right), bytes16(left)), _mm256_set_m128i(bytes16(right + 16), bytes16(left + 16))};
}

// The levels of two blocks of 32.
template <class Format> BytePair pair_of_blocks(const uint8_t *left, const uint8_t *right) {
  if constexpr (std::is_same_v<Format, Q4_0>) return nibble_pair(left + 2, right + 2);
  if constexpr (std::is_same_v<Format, Q4_1>) return nibble_pair(left + 4, right + 4);
  if constexpr (std::is_same_v<Format, Q8_0>) {
    const BytePair bytes = byte_pair(left + 2, right + 2);
    const __m256i turn = _mm256_set1_epi8(int8_t(0x80));
    return {_mm256_xor_si256(bytes.first, turn), _mm256_xor_si256(bytes.second, turn)};
  }
  return pair_of(LevelsOf<Format>::raw(left, 0), LevelsOf<Format>::raw(right, 0));
}

// The levels of two groups.
template <int bits> BytePair pair_of_groups(const uint8_t *left, const uint8_t *right) {
  if constexpr (bits == 8) return byte_pair(left, right);
  if constexpr (bits == 4) { // a byte has two adjacent values
    const BytePair both = nibble_pair(left, right);
    return {_mm256_unpacklo_epi8(both.first, both.second), _mm256_unpackhi_epi8(both.first, both.second)};
  }
  return pair_of(group_levels<bits>(left), group_levels<bits>(right));
}

} // namespace orchard::ORCHARD_ISA

#endif
