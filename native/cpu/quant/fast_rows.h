// Products of rows of bytes with rows of weights, two parts of 32 values at a time: the levels of some rows of weights
// are unpacked to bytes once for up to four rows of x.
//
//   sum of a lane = Σ x · (raw − offset) = (Σ x · raw) − offset · Σ x, in integers; times scale_W · scale_x
//
// Lanes 0 to 3 are the first part's, 4 to 7 the second's. They are merged as a tree at the end.
#pragma once

#include "dots.h"
#include "fast.h"
#include "few_rows.h"

#if defined(__AVX2__)

namespace orchard::ORCHARD_ISA {

// The levels of two parts: [0, 16) of both, and [16, 32) of both.
struct BytePair {
  __m256i first, second;
};

inline BytePair pair_of(__m256i left, __m256i right) {
  return {_mm256_permute2x128_si256(left, right, 0x20), _mm256_permute2x128_si256(left, right, 0x31)};
}

// Lanes of one part's number, and of the other's.
inline __m256 spread(const float &left, const float &right) {
  return _mm256_set_m128(_mm_broadcast_ss(&right), _mm_broadcast_ss(&left));
}
inline __m256 spread_halves(const void *left, const void *right) {
  uint16_t bits[2];
  std::memcpy(bits, left, 2);
  std::memcpy(bits + 1, right, 2);
  const __m128i both = _mm_unpacklo_epi64(_mm_set1_epi16(int16_t(bits[0])), _mm_set1_epi16(int16_t(bits[1])));
  return _mm256_cvtph_ps(both);
}

// ---------------------------------------------------------------- two parts of weights

// Two blocks of 32, or twice the last one.
template <class Format, bool = Format::values == 32> struct Step {
  using Own = LevelsOf<Format>;
  static constexpr int pairs = 1;
  const uint8_t *left, *right;

  Step(const LevelRow<Format> &row, int64_t step, bool is_whole)
      : left(row.row + 2 * step * Format::bytes), right(left + (is_whole ? Format::bytes : 0)) {}

  BytePair raw(int) const { return pair_of(Own::raw(left, 0), Own::raw(right, 0)); }
  __m256 scales(int, int) const {
    if constexpr (std::is_same_v<Format, Mxfp4>) {
      const float own[2] = {half_power(*left), half_power(*right)};
      return spread(own[0], own[1]);
    } else {
      return spread_halves(left, right);
    }
  }
  __m256 lows(int, int) const { return spread_halves(left + 2, right + 2); }
};

// A block of 256.
template <class Format> struct Step<Format, false> {
  using Own = LevelsOf<Format>;
  static constexpr int pairs = 4;
  const uint8_t *block;
  typename Own::Head head;

  Step(const LevelRow<Format> &row, int64_t step, bool) : block(row.row + step * Format::bytes), head(block) {}

  BytePair raw(int pair) const { return pair_of(Own::raw(block, 2 * pair), Own::raw(block, 2 * pair + 1)); }
  static int at(int part, int half) { return Own::has_halves ? part * 2 + half : part; }
  __m256 scales(int pair, int half) const {
    return spread(head.scales[at(2 * pair, half)], head.scales[at(2 * pair + 1, half)]);
  }
  __m256 lows(int pair, int half) const {
    return spread(head.lows[at(2 * pair, half)], head.lows[at(2 * pair + 1, half)]);
  }
};

template <int bits, bool is_symmetric> struct GroupStep {
  using Row = GroupLevelRow<bits, is_symmetric>;
  static constexpr int pairs = 1;
  const Row &row;
  int64_t left, right;

  GroupStep(const Row &own, int64_t step, bool is_whole)
      : row(own), left(2 * step), right(left + (is_whole ? 1 : 0)) {}

  BytePair raw(int) const {
    return pair_of(group_levels<bits>(row.row + left * bits * 4), group_levels<bits>(row.row + right * bits * 4));
  }
  __m256 scales(int, int) const { return numbers(row.scales); }
  __m256 lows(int, int) const { return numbers(row.biases); }

private:
  __m256 numbers(const void *all) const {
    const int64_t first = row.first_group + (left >> row.shift), second = row.first_group + (right >> row.shift);
    if (row.dtype == DType::float16) {
      const auto *halves = static_cast<const uint16_t *>(all);
      return spread_halves(halves + first, halves + second);
    }
    const float own[2] = {group_number(all, row.dtype, first), group_number(all, row.dtype, second)};
    return spread(own[0], own[1]);
  }
};

template <class Row> struct StepOf;
template <class Format> struct StepOf<LevelRow<Format>> {
  using type = Step<Format>;
  static constexpr bool is_wide = LevelsOf<Format>::offset > 64; // q8_0 and iq4_nl
};
template <int bits, bool is_symmetric> struct StepOf<GroupLevelRow<bits, is_symmetric>> {
  using type = GroupStep<bits, is_symmetric>;
  static constexpr bool is_wide = bits == 8;
};

// ---------------------------------------------------------------- products

template <class Dots, class Row> struct ByteProduct {
  using Step = typename StepOf<Row>::type;
  static constexpr bool is_turned = StepOf<Row>::is_wide && !Dots::takes_wide;
  static constexpr int offset = Row::offset - (is_turned ? 128 : 0);

  static __m256i add(__m256i sums, __m256i raw, __m256i x) {
    if constexpr (!is_turned) return Dots::add(sums, raw, x);
    const __m256i own = _mm256_xor_si256(raw, _mm256_set1_epi8(int8_t(0x80)));
    return Dots::add(sums, _mm256_abs_epi8(own), _mm256_sign_epi8(x, own));
  }

  // −offset · Σ x
  static __m256i start(__m256i x) {
    const __m256i zero = _mm256_setzero_si256();
    if constexpr (offset == 0) return zero;
    const __m256i own = Dots::add(zero, _mm256_set1_epi8(int8_t(offset < 0 ? -offset : offset)), x);
    return offset < 0 ? own : _mm256_sub_epi32(zero, own);
  }

  static __m256 sums_of(__m256i x) {
    return _mm256_cvtepi32_ps(Dots::add(_mm256_setzero_si256(), _mm256_set1_epi8(1), x));
  }

  // Two parts of a row of x.
  struct Bytes {
    __m256i first, second;
    __m256 scales;
  };

  static Bytes bytes_at(const ByteRows &x, int64_t pair) {
    const auto *levels = reinterpret_cast<const __m256i *>(x.levels + pair * 64);
    return {_mm256_loadu_si256(levels), _mm256_loadu_si256(levels + 1),
            spread(x.scales[2 * pair], x.scales[2 * pair + 1])};
  }

  static void add_pair(const Step &step, int pair, const BytePair &raw, const Bytes &x, __m256 &sum) {
    const auto scaled = [&](int half) { return _mm256_mul_ps(step.scales(pair, half), x.scales); };
    if constexpr (Row::has_halves) {
      const __m256i first = add(start(x.first), raw.first, x.first);
      const __m256i second = add(start(x.second), raw.second, x.second);
      sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(first), scaled(0), sum);
      sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(second), scaled(1), sum);
      if constexpr (Row::has_low) {
        sum = _mm256_fmadd_ps(_mm256_mul_ps(sums_of(x.first), x.scales), step.lows(pair, 0), sum);
        sum = _mm256_fmadd_ps(_mm256_mul_ps(sums_of(x.second), x.scales), step.lows(pair, 1), sum);
      }
    } else {
      const __m256i begin = start2(x);
      sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(add(add(begin, raw.first, x.first), raw.second, x.second)), scaled(0),
                            sum);
      if constexpr (Row::has_low) {
        const __m256i ones = _mm256_set1_epi8(1);
        const __m256i all = Dots::add(Dots::add(_mm256_setzero_si256(), ones, x.first), ones, x.second);
        sum = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(all), x.scales), step.lows(pair, 0), sum);
      }
    }
  }

  static __m256i start2(const Bytes &x) {
    const __m256i zero = _mm256_setzero_si256();
    if constexpr (offset == 0) return zero;
    const __m256i by = _mm256_set1_epi8(int8_t(offset < 0 ? -offset : offset));
    const __m256i own = Dots::add(Dots::add(zero, by, x.first), by, x.second);
    return offset < 0 ? own : _mm256_sub_epi32(zero, own);
  }
};

inline float merged(__m256 vector) {
  float numbers[8];
  _mm256_storeu_ps(numbers, vector);
  for (int half = 4; half > 0; half /= 2)
    for (int i = 0; i < half; i++) numbers[i] += numbers[i + half];
  return numbers[0];
}

// As `multiply_rows` of few_rows.h.
template <class Dots, class Row, int count, size_t... r>
void multiply_byte_rows(std::index_sequence<r...>, const Weights &weights, int64_t first, const ByteRows &x, float *out,
                        int64_t stride) {
  using Product = ByteProduct<Dots, Row>;
  using Step = typename Product::Step;
  constexpr int rows = sizeof...(r);
  const Row all[rows] = {Row(weights, first + int64_t(r))...};
  __m256 sums[rows][count];
  for (auto &row : sums)
    for (auto &sum : row) sum = _mm256_setzero_ps();
  const int64_t parts = weights.columns / 32, steps = (parts + 2 * Step::pairs - 1) / (2 * Step::pairs);
  ByteRows xs[count];
  for (int at = 0; at < count; at++) xs[at] = x.row(at);
  for (int64_t step = 0; step < steps; step++) {
    const bool is_whole = 2 * Step::pairs * (step + 1) <= parts;
    for (int row = 0; row < rows; row++) {
      const Step own(all[row], step, is_whole);
      for (int pair = 0; pair < Step::pairs; pair++) {
        const BytePair raw = own.raw(pair);
        for (int at = 0; at < count; at++)
          Product::add_pair(own, pair, raw, Product::bytes_at(xs[at], step * Step::pairs + pair), sums[row][at]);
      }
    }
  }
  for (int row = 0; row < rows; row++)
    for (int at = 0; at < count; at++) out[at * stride + row] = merged(sums[row][at]);
}

template <class Dots, class Row, int count>
void multiply_bytes(const Weights &weights, const ByteRows &x, int64_t begin, int64_t end, float *out) {
  constexpr int together = count == 1 ? 4 : 2;
  int64_t n = begin;
  for (; n + together <= end; n += together)
    multiply_byte_rows<Dots, Row, count>(std::make_index_sequence<together>(), weights, n, x, out + n, weights.rows);
  for (; n < end; n++)
    multiply_byte_rows<Dots, Row, count>(std::make_index_sequence<1>(), weights, n, x, out + n, weights.rows);
}

template <class Dots, class Row>
void multiply_bytes(const Weights &weights, const ByteRows &x, int64_t count, int64_t begin, int64_t end, float *out) {
  int64_t at = 0;
  for (; at + 4 <= count; at += 4)
    multiply_bytes<Dots, Row, 4>(weights, x.row(at), begin, end, out + at * weights.rows);
  for (; at < count; at++) multiply_bytes<Dots, Row, 1>(weights, x.row(at), begin, end, out + at * weights.rows);
}

} // namespace orchard::ORCHARD_ISA

#endif
