// Products of few rows of x, up to four at a time, with rows of weights, for instruction sets with AVX2: some rows of
// weights at once, whose parts are unpacked in registers. A value is scale · level + low in float32, as `dequantize`
// gives it; sums are in float32, in lanes, one for each element of the result, and merged as a tree.
#pragma once

#include "level_pairs.h"
#include "weights.h"

#include <algorithm>
#include <utility>

#if defined(__AVX2__)

namespace orchard::ORCHARD_ISA {

#if defined(__AVX512F__)
constexpr int float_lanes = 16;
#else
constexpr int float_lanes = 8;
#endif
constexpr int part_vectors = 32 / float_lanes;

// At any address: compilers may keep arrays of it on the stack.
typedef float Floats __attribute__((vector_size(float_lanes * 4), aligned(4)));

inline Floats floats_at(const float *from) {
  Floats own;
  __builtin_memcpy(&own, from, sizeof own);
  return own;
}

#if defined(__AVX512F__)
inline Floats fused(Floats a, Floats b, Floats sum) { return _mm512_fmadd_ps(a, b, sum); }
inline Floats all_of(float value) { return _mm512_set1_ps(value); }
// Levels 16 · at to 16 · at + 15.
template <bool is_unsigned> inline Floats floats_of(__m256i levels, int at) {
  const __m128i own = at == 0 ? _mm256_castsi256_si128(levels) : _mm256_extracti128_si256(levels, 1);
  return _mm512_cvtepi32_ps(is_unsigned ? _mm512_cvtepu8_epi32(own) : _mm512_cvtepi8_epi32(own));
}
#else
inline Floats fused(Floats a, Floats b, Floats sum) { return _mm256_fmadd_ps(a, b, sum); }
inline Floats all_of(float value) { return _mm256_set1_ps(value); }
template <bool is_unsigned> inline Floats floats_of(__m256i levels, int at) {
  const __m128i half = at < 2 ? _mm256_castsi256_si128(levels) : _mm256_extracti128_si256(levels, 1);
  const __m128i own = at & 1 ? _mm_unpackhi_epi64(half, half) : half;
  return _mm256_cvtepi32_ps(is_unsigned ? _mm256_cvtepu8_epi32(own) : _mm256_cvtepi8_epi32(own));
}
#endif

inline float sum_of(Floats vector) {
  float numbers[float_lanes];
  __builtin_memcpy(numbers, &vector, sizeof vector);
  for (int half = float_lanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++) numbers[i] += numbers[i + half];
  return numbers[0];
}

// Rows of a format's blocks: the head and the levels of a block. A row is `parts` blocks' parts.
template <class Format> struct LevelRow : LevelsOf<Format> {
  using typename LevelsOf<Format>::Head;
  static constexpr bool is_wide = LevelsOf<Format>::offset > 64; // whether raw bytes are more than 128
  static constexpr int block_parts = Format::values / 32;
  const uint8_t *row;

  LevelRow(const Weights &weights, int64_t at) : row(weights.packed + at * weights.row_bytes) {}
  Head head(int64_t block) const { return Head(row + block * Format::bytes); }
  __m256i levels(int64_t block, int part) const { return signed_levels<Format>(row + block * Format::bytes, part); }
  BytePair pair(int64_t block, int left, int right) const {
    const uint8_t *own = row + block * Format::bytes;
    return pair_of(LevelsOf<Format>::raw(own, left), LevelsOf<Format>::raw(own, right));
  }
};

inline float group_number(const void *numbers, DType dtype, int64_t at) {
  if (dtype == DType::float16) return converted_half(static_cast<const uint8_t *>(numbers) + 2 * at);
  if (dtype == DType::bfloat16) return load(static_cast<const BFloat16 *>(numbers)[at]);
  return static_cast<const float *>(numbers)[at];
}

// Eight numbers of which as many as eight parts need are read: 8, 4 or 2.
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

// The numbers of up to eight parts' groups, one for each part; 2^shift parts are a group.
inline __m256 numbers_of_parts(const void *numbers, DType dtype, int64_t first_group, int shift, int parts) {
  const __m256i at = _mm256_srlv_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(shift));
  if (parts == 8) return _mm256_permutevar8x32_ps(wide_numbers(numbers, dtype, first_group, shift), at);
  float own[8] = {};
  for (int part = 0; part < parts; part++) own[part] = group_number(numbers, dtype, first_group + (part >> shift));
  return _mm256_loadu_ps(own);
}

// Rows of groups, eight parts at a time, fewer at the end. Levels of symmetric ones are brought around 0.
template <int bits, bool is_symmetric> struct GroupLevelRow {
  static constexpr bool has_low = !is_symmetric, has_halves = false, is_wide = bits == 8;
  static constexpr int offset = is_symmetric ? 1 << (bits - 1) : 0;
  static constexpr int block_parts = 8;
  using Head = ManyHead<8>;
  const void *scales, *biases;
  DType dtype;
  const uint8_t *row;
  int64_t first_group, parts;
  int shift; // 2^shift parts are a group

  GroupLevelRow(const Weights &weights, int64_t at)
      : scales(weights.scales), biases(weights.biases), dtype(weights.scale_dtype),
        row(weights.packed + at * weights.row_bytes), first_group(at * (weights.columns / weights.group)),
        parts(weights.columns / 32), shift(weights.group == 32   ? 0
                                           : weights.group == 64 ? 1
                                                                 : 2) {}
  Head head(int64_t block) const {
    Head own;
    const int64_t group = first_group + (block * 8 >> shift);
    const int count = int(parts - block * 8 < 8 ? parts - block * 8 : 8);
    _mm256_storeu_ps(own.scales, numbers_of_parts(scales, dtype, group, shift, count));
    if constexpr (has_low) _mm256_storeu_ps(own.lows, numbers_of_parts(biases, dtype, group, shift, count));
    return own;
  }
  __m256i levels(int64_t block, int part) const {
    const __m256i own = group_levels<bits>(row + (block * 8 + part) * bits * 4);
    return is_symmetric ? _mm256_sub_epi8(own, _mm256_set1_epi8(int8_t(offset))) : own;
  }
  BytePair pair(int64_t block, int left, int right) const {
    const uint8_t *own = row + block * 8 * bits * 4;
    return pair_of_groups<bits>(own + left * bits * 4, own + right * bits * 4);
  }
};

// The values of `parts` parts of a row from part `first` on.
template <class Row>
void unpack_levels_of(const Weights &weights, int64_t at, int64_t first, int64_t parts, float *out) {
  const Row row(weights, at);
  for (int64_t part = first; part < first + parts;) {
    const int64_t block = part / Row::block_parts;
    const auto head = row.head(block);
    const int64_t end = std::min(first + parts, (block + 1) * Row::block_parts);
    for (; part < end; part++, out += 32) {
      const int own = int(part - block * Row::block_parts);
      const __m256i levels = row.levels(block, own);
      for (int v = 0; v < part_vectors; v++) {
        const int half = Row::has_halves ? v * 2 / part_vectors : 0;
        Floats value = floats_of<Row::offset == 0>(levels, v) * all_of(head.scale(own, half));
        if constexpr (Row::has_low) value += all_of(head.low(own, half));
        __builtin_memcpy(out + v * float_lanes, &value, sizeof value);
      }
    }
  }
}

// out[at · stride + r] = Σ x[at · pitch + k] W[first + r, k] for as many rows r of weights as there are indices, and
// `count` rows of x.
template <class Row, int count, size_t... r>
void multiply_rows(std::index_sequence<r...>, const Weights &weights, int64_t first, const float *x, int64_t pitch,
                   float *out, int64_t stride) {
  constexpr int rows = sizeof...(r);
  const Row all[rows] = {Row(weights, first + int64_t(r))...};
  Floats sums[rows][count] = {};
  const int64_t parts = weights.columns / 32;
  for (int64_t block = 0; block * Row::block_parts < parts; block++)
    for (int row = 0; row < rows; row++) {
      const auto head = all[row].head(block);
      const int own_parts = int(std::min<int64_t>(Row::block_parts, parts - block * Row::block_parts));
      for (int part = 0; part < own_parts; part++) {
        const __m256i levels = all[row].levels(block, part);
        const float *from = x + (block * Row::block_parts + part) * 32;
        for (int v = 0; v < part_vectors; v++) {
          const int half = Row::has_halves ? v * 2 / part_vectors : 0;
          Floats value = floats_of<Row::offset == 0>(levels, v) * all_of(head.scale(part, half));
          if constexpr (Row::has_low) value += all_of(head.low(part, half));
          for (int at = 0; at < count; at++)
            sums[row][at] = fused(value, floats_at(from + at * pitch + v * float_lanes), sums[row][at]);
        }
      }
    }
  for (int row = 0; row < rows; row++)
    for (int at = 0; at < count; at++) out[at * stride + row] = sum_of(sums[row][at]);
}

// Rows `begin` to `end` of weights, four at a time where x has one row, two for more.
template <class Row, int count>
void multiply_few(const Weights &weights, const float *x, int64_t begin, int64_t end, float *out) {
  constexpr int together = count == 1 ? 4 : 2;
  int64_t n = begin;
  for (; n + together <= end; n += together)
    multiply_rows<Row, count>(std::make_index_sequence<together>(), weights, n, x, weights.columns, out + n,
                              weights.rows);
  for (; n < end; n++)
    multiply_rows<Row, count>(std::make_index_sequence<1>(), weights, n, x, weights.columns, out + n, weights.rows);
}

template <class Row>
void multiply_few(const Weights &weights, const float *x, int64_t count, int64_t begin, int64_t end, float *out) {
  const int64_t x_pitch = weights.columns, out_pitch = weights.rows;
  for (; count >= 4; count -= 4, x += 4 * x_pitch, out += 4 * out_pitch)
    multiply_few<Row, 4>(weights, x, begin, end, out);
  if (count & 2) {
    multiply_few<Row, 2>(weights, x, begin, end, out);
    x += 2 * x_pitch, out += 2 * out_pitch;
  }
  if (count & 1) multiply_few<Row, 1>(weights, x, begin, end, out);
}

template <bool is_symmetric, class Use> void with_level_bits(int64_t bits, Use &&use) {
  switch (bits) {
  case 2: return use(Type<GroupLevelRow<2, is_symmetric>>{});
  case 3: return use(Type<GroupLevelRow<3, is_symmetric>>{});
  case 4: return use(Type<GroupLevelRow<4, is_symmetric>>{});
  case 5: return use(Type<GroupLevelRow<5, is_symmetric>>{});
  case 6: return use(Type<GroupLevelRow<6, is_symmetric>>{});
  default: return use(Type<GroupLevelRow<8, is_symmetric>>{});
  }
}

// Calls use(Type<Row>{}) with what reads the rows of these weights; false where they have no levels.
template <class Use> bool with_level_rows(const Weights &weights, Use &&use) {
  switch (weights.packing) {
  case Packing::q4_0: use(Type<LevelRow<Q4_0>>{}); return true;
  case Packing::q4_1: use(Type<LevelRow<Q4_1>>{}); return true;
  case Packing::q5_0: use(Type<LevelRow<Q5_0>>{}); return true;
  case Packing::q5_1: use(Type<LevelRow<Q5_1>>{}); return true;
  case Packing::q8_0: use(Type<LevelRow<Q8_0>>{}); return true;
  case Packing::q2_K: use(Type<LevelRow<Q2K>>{}); return true;
  case Packing::q3_K: use(Type<LevelRow<Q3K>>{}); return true;
  case Packing::q4_K: use(Type<LevelRow<Q4K>>{}); return true;
  case Packing::q5_K: use(Type<LevelRow<Q5K>>{}); return true;
  case Packing::q6_K: use(Type<LevelRow<Q6K>>{}); return true;
  case Packing::iq4_nl: use(Type<LevelRow<Iq4Nl>>{}); return true;
  case Packing::mxfp4: use(Type<LevelRow<Mxfp4>>{}); return true;
  case Packing::affine: with_level_bits<false>(weights.bits, use); return true;
  case Packing::symmetric: with_level_bits<true>(weights.bits, use); return true;
  default: return false;
  }
}

} // namespace orchard::ORCHARD_ISA

#endif
