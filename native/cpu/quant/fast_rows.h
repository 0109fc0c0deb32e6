// Products of rows of bytes with rows of weights, two parts of 32 values at a time. The levels of several rows of
// weights are unpacked to bytes once for up to four rows of x.
//
//   sum of a lane = Σ x · (raw − offset) = (Σ x · raw) − offset · Σ x, in integers; times scale_W · scale_x
//
// Lanes 0 to 3 belong to the first part, and 4 to 7 to the second. They are merged as a binary tree at the end.
#pragma once

#include "dots.h"
#include "fast.h"
#include "few_rows.h"

#if defined(__AVX2__)

namespace orchard::ORCHARD_ISA {

// Aligned like a float, since compilers may keep arrays of this type on the stack.
typedef float Eight __attribute__((vector_size(32), aligned(4)));

// ---------------------------------------------------------------- two parts of weights

// Eight parts together with their scales: a block of 256, several blocks of 32, or groups. At the end of a row there
// may be fewer.
template <class Row> struct HeadStep {
  const Row &row;
  const int64_t step;
  const int parts;
  const typename Row::Head head;

  HeadStep(const Row &weights_row, int64_t at, int count)
      : row(weights_row), step(at), parts(count), head(weights_row.head(at)) {}

  BytePair raw(int pair) const {
    const int right = 2 * pair + 1 < parts ? 2 * pair + 1 : 2 * pair;
    return row.pair(step, 2 * pair, right);
  }
  // Returns the numbers of each part, or of one half of each part.
  static __m256 numbers(const float *all, int half) {
    if constexpr (!Row::has_halves) return _mm256_loadu_ps(all);
    const __m256 low = _mm256_loadu_ps(all), high = _mm256_loadu_ps(all + 8);
    const __m256 picked = half == 0 ? _mm256_shuffle_ps(low, high, 0x88) : _mm256_shuffle_ps(low, high, 0xdd);
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(picked), 0xd8));
  }
  __m256 scales(int half) const { return numbers(head.scales, half); }
  __m256 lows(int half) const { return numbers(head.lows, half); }
};

// ---------------------------------------------------------------- products

template <class Dots, class Row> struct ByteProduct {
  static constexpr bool is_turned = Row::is_wide && !Dots::takes_wide;
  static constexpr int offset = Row::offset - (is_turned ? 128 : 0);

  static __m256i add(__m256i sums, __m256i raw, __m256i x) {
    if constexpr (!is_turned) return Dots::add(sums, raw, x);
    const __m256i centered = _mm256_xor_si256(raw, _mm256_set1_epi8(int8_t(0x80)));
    return Dots::add(sums, _mm256_abs_epi8(centered), _mm256_sign_epi8(x, centered));
  }

  // Two parts of a row of x, and −offset · Σ x: separately for the first and the second half, or for both together.
  struct Bytes {
    __m256i first, second, start[2];

    Bytes(const ByteRows &x, int64_t pair) {
      const auto *levels = reinterpret_cast<const __m256i *>(x.levels + pair * 64);
      first = _mm256_loadu_si256(levels);
      second = _mm256_loadu_si256(levels + 1);
      start[0] = start[1] = _mm256_setzero_si256();
      if constexpr (offset == 0) return;
      const __m256i by = _mm256_set1_epi8(int8_t(offset < 0 ? -offset : offset));
      start[0] = Dots::add(start[0], by, first);
      __m256i &last = start[Row::has_halves ? 1 : 0];
      last = Dots::add(last, by, second);
      if constexpr (offset > 0)
        for (auto &sum : start) sum = _mm256_sub_epi32(_mm256_setzero_si256(), sum);
    }
  };

  static __m256 scaled(__m256i dots, __m256 scale, __m256 sum) {
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots), scale, sum);
  }
};

// Loads one number for each of the `parts` of a step. A step has up to eight parts; the numbers of missing ones are 0.
inline __m256 numbers_of_step(const float *numbers, int64_t step, int parts) {
  if (parts == 8) return _mm256_loadu_ps(numbers + step * 8);
  const __m256i there = _mm256_cmpgt_epi32(_mm256_set1_epi32(parts), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  return _mm256_maskload_ps(numbers + step * 8, there);
}

// Adds a step of several rows of weights to the sums with each row of x.
template <class Dots, class Row, int rows, int count>
[[gnu::always_inline]] inline void add_step(const HeadStep<Row> (&steps)[rows], const ByteRows (&xs)[count],
                                            int64_t step, int parts, Eight (&sums)[rows][count]) {
  using Product = ByteProduct<Dots, Row>;
  constexpr int halves = Row::has_halves ? 2 : 1;
  Eight scales[halves][rows][count];
  for (int at = 0; at < count; at++) {
    const ByteRows &x = xs[at];
    const __m256 x_scales = numbers_of_step(x.scales, step, parts);
    for (int half = 0; half < halves; half++)
      for (int row = 0; row < rows; row++) scales[half][row][at] = _mm256_mul_ps(steps[row].scales(half), x_scales);
    if constexpr (Row::has_low) {
      __m256 x_sums[2] = {numbers_of_step(x.first_sums, step, parts), numbers_of_step(x.second_sums, step, parts)};
      if constexpr (halves == 1) x_sums[0] = _mm256_add_ps(x_sums[0], x_sums[1]);
      for (int half = 0; half < halves; half++)
        for (int row = 0; row < rows; row++)
          sums[row][at] = _mm256_fmadd_ps(steps[row].lows(half), x_sums[half], sums[row][at]);
    }
  }
#pragma GCC unroll 4
  for (int pair = 0; pair < 4; pair++) {
    if (2 * pair >= parts) break;
    const __m256i two = _mm256_add_epi32(_mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1), _mm256_set1_epi32(2 * pair));
    BytePair raw[rows];
    for (int row = 0; row < rows; row++) raw[row] = steps[row].raw(pair);
    for (int at = 0; at < count; at++) {
      const typename Product::Bytes bytes(xs[at], step * 4 + pair);
      for (int row = 0; row < rows; row++) {
        const auto scale = [&](int half) { return _mm256_permutevar8x32_ps(scales[half][row][at], two); };
        __m256i dots = Product::add(bytes.start[0], raw[row].first, bytes.first);
        if constexpr (halves == 2) {
          sums[row][at] = Product::scaled(dots, scale(0), sums[row][at]);
          dots = bytes.start[1];
        }
        dots = Product::add(dots, raw[row].second, bytes.second);
        sums[row][at] = Product::scaled(dots, scale(halves - 1), sums[row][at]);
      }
    }
  }
}

inline float merged(Eight vector) {
  float numbers[8];
  _mm256_storeu_ps(numbers, vector);
  for (int half = 4; half > 0; half /= 2)
    for (int i = 0; i < half; i++) numbers[i] += numbers[i + half];
  return numbers[0];
}

// Like `multiply_rows` of few_rows.h. Flattened, since otherwise the compiler's inlining depends on the rest of the
// file, and a call for each part takes twice the time.
template <class Dots, class Row, int count, size_t... r>
[[gnu::flatten]] void multiply_byte_rows(std::index_sequence<r...>, const Weights &weights, int64_t first,
                                         const ByteRows &x, float *out, int64_t stride) {
  using Step = HeadStep<Row>;
  constexpr int rows = sizeof...(r);
  const Row all[rows] = {Row(weights, first + int64_t(r))...};
  ByteRows xs[count];
  for (int at = 0; at < count; at++) xs[at] = x.row(at);
  Eight sums[rows][count] = {};
  const NextRows<Row, rows> next(weights, first);
  const int64_t parts = weights.columns / 32;
  const auto add = [&](int64_t step, int part_count) __attribute__((always_inline)) {
    next.fetch(step);
    const Step steps[rows] = {Step(all[r], step, part_count)...};
    add_step<Dots>(steps, xs, step, part_count, sums);
  };
  for (int64_t step = 0; step < parts / 8; step++) add(step, 8);
  if (parts % 8 != 0) add(parts / 8, int(parts % 8));
  for (int row = 0; row < rows; row++)
    for (int at = 0; at < count; at++) out[at * stride + row] = merged(sums[row][at]);
}

// The number of rows of weights that are multiplied at once with one row of x. 4-bit rows are limited by instructions,
// which several rows share. Wider rows are limited by memory, which is faster if fewer rows are read at once.
template <class Row> constexpr int rows_together = Row::block_bytes < 160 ? 4 : Row::block_bytes < 256 ? 2 : 1;

template <class Dots, class Row, int count>
void multiply_bytes(const Weights &weights, const ByteRows &x, int64_t begin, int64_t end, float *out) {
  constexpr int together = count == 1 ? rows_together<Row> : 2;
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
  for (; at + 2 <= count; at += 2)
    multiply_bytes<Dots, Row, 2>(weights, x.row(at), begin, end, out + at * weights.rows);
  for (; at < count; at++) multiply_bytes<Dots, Row, 1>(weights, x.row(at), begin, end, out + at * weights.rows);
}

} // namespace orchard::ORCHARD_ISA

#endif
