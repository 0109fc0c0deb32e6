// Row readers for instruction sets with AVX2, which return levels as vectors of floats.
#pragma once

#include "group_row.h"
#include "level_pairs.h"
#include "weights.h"

#include <algorithm>

#if defined(__AVX2__)

namespace orchard::ORCHARD_ISA {

#if defined(__AVX512F__)
constexpr int float_lanes = 16;
#else
constexpr int float_lanes = 8;
#endif
// Aligned like a float, since compilers may keep arrays of this type on the stack.
typedef float Floats __attribute__((vector_size(float_lanes * 4), aligned(4)));

inline Floats floats_at(const float *from) {
  Floats floats;
  __builtin_memcpy(&floats, from, sizeof floats);
  return floats;
}

#if defined(__AVX512F__)
inline Floats fused(Floats a, Floats b, Floats sum) { return _mm512_fmadd_ps(a, b, sum); }
inline Floats all_of(float value) { return _mm512_set1_ps(value); }
// Intrinsics with a mask of all lanes, which costs nothing: without a mask, GCC 12 warns of undefined operands in its
// headers (bug 105593).
constexpr __mmask16 all_lanes = 0xffff;
inline __m512i lanes_of(__m128i bytes) { return _mm512_maskz_cvtepu8_epi32(all_lanes, bytes); }
inline __m512i signed_lanes_of(__m128i bytes) { return _mm512_maskz_cvtepi8_epi32(all_lanes, bytes); }
inline Floats floats_of(__m512i lanes) { return _mm512_maskz_cvtepi32_ps(all_lanes, lanes); }
// Returns levels 16 · at to 16 · at + 15 as floats.
template <bool is_unsigned> inline Floats floats_of(__m256i levels, int at) {
  const __m128i sixteen = at == 0 ? _mm256_castsi256_si128(levels) : _mm256_extracti128_si256(levels, 1);
  return floats_of(is_unsigned ? lanes_of(sixteen) : signed_lanes_of(sixteen));
}
#else
inline Floats fused(Floats a, Floats b, Floats sum) { return _mm256_fmadd_ps(a, b, sum); }
inline Floats all_of(float value) { return _mm256_set1_ps(value); }
template <bool is_unsigned> inline Floats floats_of(__m256i levels, int at) {
  const __m128i half = at < 2 ? _mm256_castsi256_si128(levels) : _mm256_extracti128_si256(levels, 1);
  const __m128i eight = at & 1 ? _mm_unpackhi_epi64(half, half) : half;
  return _mm256_cvtepi32_ps(is_unsigned ? _mm256_cvtepu8_epi32(eight) : _mm256_cvtepi8_epi32(eight));
}
#endif

inline float sum_of(Floats vector) {
  float numbers[float_lanes];
  __builtin_memcpy(numbers, &vector, sizeof vector);
  for (int half = float_lanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++) numbers[i] += numbers[i + half];
  return numbers[0];
}

// Converts eight float16 numbers, `pitch` bytes apart.
template <int pitch> [[gnu::always_inline]] inline __m256 eight_halves(const uint8_t *from) {
#if defined(__AVX512F__)
  if constexpr (pitch <= 20) { // 64 bytes contain four of them
    constexpr int16_t word = pitch / 2;
    const __m512i first = _mm512_loadu_si512(from), second = _mm512_loadu_si512(from + 4 * pitch);
    const __m512i at = _mm512_castsi128_si512(
        _mm_setr_epi16(0, word, 2 * word, 3 * word, 32, 32 + word, 32 + 2 * word, 32 + 3 * word));
    return _mm256_cvtph_ps(_mm512_castsi512_si128(_mm512_permutex2var_epi16(first, at, second)));
  }
#endif
  const auto bits = [&](int at) {
    uint16_t half_bits;
    std::memcpy(&half_bits, from + at * pitch, sizeof half_bits);
    return int16_t(half_bits);
  };
  __m128i all = _mm_cvtsi32_si128(bits(0));
  all = _mm_insert_epi16(all, bits(1), 1);
  all = _mm_insert_epi16(all, bits(2), 2);
  all = _mm_insert_epi16(all, bits(3), 3);
  all = _mm_insert_epi16(all, bits(4), 4);
  all = _mm_insert_epi16(all, bits(5), 5);
  all = _mm_insert_epi16(all, bits(6), 6);
  return _mm256_cvtph_ps(_mm_insert_epi16(all, bits(7), 7));
}

// Returns the scales and lows of eight blocks of 32, or of fewer at the end of a row.
template <class Format> ManyHead<8> head_of_blocks(const uint8_t *from, int count) {
  using Head = typename LevelsOf<Format>::Head;
  ManyHead<8> head;
  if constexpr (!std::is_same_v<Head, PowerHead>)
    if (count == 8) {
      _mm256_storeu_ps(head.scales, eight_halves<Format::bytes>(from));
      if constexpr (LevelsOf<Format>::has_low) _mm256_storeu_ps(head.lows, eight_halves<Format::bytes>(from + 2));
      return head;
    }
  for (int i = 0; i < 8; i++) {
    const Head block(from + std::min(i, count - 1) * Format::bytes);
    head.scales[i] = block.scale(0, 0);
    head.lows[i] = block.low(0, 0);
  }
  return head;
}

// Reads rows of blocks: the scales and the levels of eight parts at a time. With blocks of 32, there may be fewer at
// the end of a row.
template <class Format> struct LevelRow : LevelsOf<Format> {
  static constexpr bool has_groups = false;                      // whether scales are stored apart from levels
  static constexpr bool is_wide = LevelsOf<Format>::offset > 64; // whether raw bytes can exceed 128
  static constexpr bool is_whole = Format::values == 256;        // whether eight parts are one block
  static constexpr int block_parts = 8, block_bytes = (is_whole ? 1 : 8) * Format::bytes;
  using Head = std::conditional_t<is_whole, typename LevelsOf<Format>::Head, ManyHead<8>>;
  const uint8_t *row;
  int64_t parts;

  LevelRow(const Weights &weights, int64_t at)
      : row(weights.packed + at * weights.row_bytes), parts(weights.columns / 32) {}
  Head head(int64_t block) const {
    if constexpr (is_whole) return Head(row + block * block_bytes);
    else return head_of_blocks<Format>(row + block * block_bytes, int(std::min<int64_t>(8, parts - block * 8)));
  }
  // Returns the block that contains the levels of a part.
  const uint8_t *block_of(int64_t block, int part) const {
    return row + block * block_bytes + (is_whole ? 0 : part * Format::bytes);
  }
  __m256i levels(int64_t block, int part) const { return signed_levels<Format>(block_of(block, part), part); }
  static Floats floats(__m256i levels, int at) { return floats_of<LevelsOf<Format>::offset == 0>(levels, at); }
  BytePair pair(int64_t block, int left, int right) const {
    const uint8_t *first = block_of(block, left), *second = block_of(block, right);
    if constexpr (is_whole) return pair_of(LevelsOf<Format>::raw(first, left), LevelsOf<Format>::raw(second, right));
    else return pair_of_blocks<Format>(first, second);
  }
};

inline float group_number(const void *numbers, DType dtype, int64_t at) {
  if (dtype == DType::float16) return converted_half(static_cast<const uint8_t *>(numbers) + 2 * at);
  if (dtype == DType::bfloat16) return load(static_cast<const BFloat16 *>(numbers)[at]);
  return static_cast<const float *>(numbers)[at];
}

// Loads as many scales as eight parts need: 8, 4 or 2.
inline __m256 wide_numbers(const void *numbers, DType dtype, int64_t at, int shift) {
  if (dtype == DType::float32) {
    const auto *from = static_cast<const float *>(numbers) + at;
    if (shift == 0) return _mm256_loadu_ps(from);
    if (shift == 1) return _mm256_castps128_ps256(_mm_loadu_ps(from));
    return _mm256_castps128_ps256(_mm_castsi128_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(from))));
  }
  const auto *from = static_cast<const uint8_t *>(numbers) + 2 * at;
  const __m128i bits = shift == 0   ? bytes16(from)
                       : shift == 1 ? _mm_loadl_epi64(reinterpret_cast<const __m128i *>(from))
                                    : _mm_cvtsi32_si128(int(word_at(from)));
  if (dtype == DType::float16) return _mm256_cvtph_ps(bits);
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

// Returns the scales of up to eight parts, one for each; a group has 2^shift parts.
inline __m256 numbers_of_parts(const void *numbers, DType dtype, int64_t first_group, int shift, int parts) {
  const __m256i at = _mm256_srlv_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(shift));
  if (parts == 8) return _mm256_permutevar8x32_ps(wide_numbers(numbers, dtype, first_group, shift), at);
  float expanded[8] = {};
  for (int part = 0; part < parts; part++) expanded[part] = group_number(numbers, dtype, first_group + (part >> shift));
  return _mm256_loadu_ps(expanded);
}

// Reads rows of groups, eight parts at a time, fewer at the end. The levels of symmetric groups are centered at 0.
template <int bits, bool is_symmetric> struct GroupLevelRow : GroupRow {
  static constexpr bool has_groups = true;
  static constexpr bool has_low = !is_symmetric, has_halves = false, is_wide = bits == 8;
  static constexpr int offset = is_symmetric ? 1 << (bits - 1) : 0;
  static constexpr int block_parts = 8, block_bytes = 8 * bits * 4;
  using Head = ManyHead<8>;
  using GroupRow::GroupRow;
  Head head(int64_t block) const {
    Head result;
    const int64_t group = first_group + (block * 8 >> shift);
    const int count = int(parts - block * 8 < 8 ? parts - block * 8 : 8);
    _mm256_storeu_ps(result.scales, numbers_of_parts(scales, dtype, group, shift, count));
    if constexpr (has_low) _mm256_storeu_ps(result.lows, numbers_of_parts(biases, dtype, group, shift, count));
    return result;
  }
  __m256i levels(int64_t block, int part) const {
    const __m256i raw = group_levels<bits>(row + (block * 8 + part) * bits * 4);
    return is_symmetric ? _mm256_sub_epi8(raw, _mm256_set1_epi8(int8_t(offset))) : raw;
  }
  static Floats floats(__m256i levels, int at) { return floats_of<offset == 0>(levels, at); }
  BytePair pair(int64_t block, int left, int right) const {
    const uint8_t *packed = row + block * 8 * bits * 4;
    return pair_of_groups<bits>(packed + left * bits * 4, packed + right * bits * 4);
  }
};

} // namespace orchard::ORCHARD_ISA

#endif
