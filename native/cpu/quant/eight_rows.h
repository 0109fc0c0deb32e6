// Products of eight rows of bytes, one per lane, with several rows of weights at once, piece by piece. A piece is a
// part of 32 values, or half of one if halves have separate scales.
//
//   sum = fma(low_W, scale_x · Σ x, sum), if weights have lows; then sum = fma(Σ x · level, scale_W · scale_x, sum)
//
// Eight parts of each row of weights are unpacked to unsigned bytes. Four bytes at a time are multiplied with four of
// every row of x.
#pragma once

#include "eight.h"
#include "fast_rows.h"

#if defined(__AVX2__)

namespace orchard::ORCHARD_ISA {

constexpr int64_t step_parts = 8;

// Copies half `half` of a part of a row of x to its lane, or writes zeros if the row does not exist.
inline void arrange_half(const ByteRows &row, bool is_there, int64_t part, int64_t half, int64_t lane,
                         const ByteLanes &out) {
  static constexpr int8_t zeros[16] = {};
  const int8_t *levels = is_there ? row.levels + part / 2 * 64 + part % 2 * 16 + half * 32 : zeros;
  const int64_t at = (part * 2 + half) * lanes_of_rows + lane;
  for (int64_t four = 0; four < 4; four++)
    __builtin_memcpy(out.levels + ((part * 8 + half * 4 + four) * lanes_of_rows + lane) * 4, levels + four * 4, 4);
  int32_t sum = 0;
  for (int64_t i = 0; i < 16; i++) sum += levels[i];
  out.sums[at] = sum;
  out.scaled_sums[at] = is_there ? (half == 0 ? row.first_sums : row.second_sums)[part] : 0;
}

inline void arrange_lanes(const ByteRows &x, int64_t count, const ByteLanes &out) {
  for (int64_t lane = 0; lane < lanes_of_rows; lane++) {
    const bool is_there = lane < count;
    const ByteRows row = x.row(is_there ? lane : 0);
    for (int64_t part = 0; part < out.parts; part++) {
      out.scales[part * lanes_of_rows + lane] = is_there ? row.scales[part] : 0;
      for (int64_t half = 0; half < 2; half++) arrange_half(row, is_there, part, half, lane, out);
    }
  }
}

// Eight unpacked parts of each of some rows of weights.
template <int rows> struct StepBytes {
  alignas(32) uint8_t raw[rows][step_parts * 32];
  float scales[rows][step_parts * 2], lows[rows][step_parts * 2]; // for each piece
};

template <class Row, int rows> void unpack_step(const Row &row, int64_t step, int parts, int at, StepBytes<rows> &out) {
  constexpr int halves = Row::has_halves ? 2 : 1;
  const auto head = row.head(step);
  for (int piece = 0; piece < parts * halves; piece++) {
    out.scales[at][piece] = head.scale(piece / halves, piece % halves);
    if constexpr (Row::has_low) out.lows[at][piece] = head.low(piece / halves, piece % halves);
  }
  for (int part = 0; part < parts; part++) {
    const __m256i bytes = _mm256_add_epi8(row.levels(step, part), _mm256_set1_epi8(int8_t(Row::offset)));
    _mm256_store_si256(reinterpret_cast<__m256i *>(out.raw[at] + part * 32), bytes);
  }
}

// Adds piece `piece` of a step of each row of weights: half `half` of part `part`, or the whole part.
template <class Dots, class Row, int rows>
[[gnu::always_inline]] inline void add_piece(const ByteLanes &x, int64_t part, int half, const StepBytes<rows> &step,
                                             int piece, Eight (&sums)[rows]) {
  using Product = ByteProduct<Dots, Row>;
  constexpr bool has_halves = Row::has_halves;
  constexpr int fours = has_halves ? 4 : 8;
  const auto *levels = reinterpret_cast<const __m256i *>(x.levels) + part * 8 + half * 4;
  const auto *x_sums = reinterpret_cast<const __m256i *>(x.sums) + part * 2 + half;
  const int first = piece * fours * 4;
  __m256i start = _mm256_setzero_si256();
  if constexpr (Product::offset != 0) {
    start = _mm256_loadu_si256(x_sums);
    if constexpr (!has_halves) start = _mm256_add_epi32(start, _mm256_loadu_si256(x_sums + 1));
    start = _mm256_mullo_epi32(start, _mm256_set1_epi32(-Product::offset));
  }
  __m256i dots[rows];
#pragma GCC unroll 8
  for (int row = 0; row < rows; row++) dots[row] = start;
#pragma GCC unroll 8
  for (int four = 0; four < fours; four++) {
    const __m256i x_bytes = _mm256_loadu_si256(levels + four);
#pragma GCC unroll 8
    for (int row = 0; row < rows; row++) {
      int32_t bytes;
      __builtin_memcpy(&bytes, step.raw[row] + first + four * 4, 4);
      dots[row] = Product::add(dots[row], _mm256_set1_epi32(bytes), x_bytes);
    }
  }
  if constexpr (Row::has_low) {
    const float *scaled_sums = x.scaled_sums + (part * 2 + half) * lanes_of_rows;
    __m256 x_low = _mm256_loadu_ps(scaled_sums);
    if constexpr (!has_halves) x_low = _mm256_add_ps(x_low, _mm256_loadu_ps(scaled_sums + lanes_of_rows));
#pragma GCC unroll 8
    for (int row = 0; row < rows; row++)
      sums[row] = _mm256_fmadd_ps(_mm256_set1_ps(step.lows[row][piece]), x_low, sums[row]);
  }
  const __m256 x_scales = _mm256_loadu_ps(x.scales + part * lanes_of_rows);
#pragma GCC unroll 8
  for (int row = 0; row < rows; row++) {
    const __m256 scale = _mm256_mul_ps(_mm256_set1_ps(step.scales[row][piece]), x_scales);
    sums[row] = Product::scaled(dots[row], scale, sums[row]);
  }
}

// out[at · stride + r] for as many rows r of weights as there are indices. At the end of the weights, the last row is
// repeated.
template <class Dots, class Row, size_t... r>
void multiply_lanes(std::index_sequence<r...>, const Weights &weights, int64_t first, int64_t row_count,
                    const ByteLanes &x, int64_t count, float *out, int64_t stride) {
  constexpr int rows = sizeof...(r);
  constexpr int halves = Row::has_halves ? 2 : 1;
  const Row all[rows] = {Row(weights, first + std::min(int64_t(r), row_count - 1))...};
  const NextRows<Row, rows> next(weights, first);
  StepBytes<rows> bytes;
  Eight sums[rows];
#pragma GCC unroll 8
  for (int row = 0; row < rows; row++) sums[row] = _mm256_setzero_ps();
  for (int64_t step = 0, done = 0; done < x.parts; step++, done += step_parts) {
    const int parts = int(std::min(step_parts, x.parts - done));
    next.fetch(step);
    for (int row = 0; row < rows; row++) unpack_step(all[row], step, parts, row, bytes);
    for (int piece = 0; piece < parts * halves; piece++)
      add_piece<Dots, Row, rows>(x, done + piece / halves, piece % halves, bytes, piece, sums);
  }
  for (int64_t row = 0; row < row_count; row++) {
    float lanes[lanes_of_rows];
    _mm256_storeu_ps(lanes, sums[row]);
    for (int64_t at = 0; at < count; at++) out[at * stride + row] = lanes[at];
  }
}

template <class Dots, class Row>
void multiply_lanes(const Weights &weights, const ByteLanes &x, int64_t count, int64_t begin, int64_t end, float *out) {
  constexpr int64_t together = Dots::takes_wide ? 8 : 4; // as many sums as there are registers
  for (int64_t n = begin; n < end; n += together)
    multiply_lanes<Dots, Row>(std::make_index_sequence<together>(), weights, n, std::min(together, end - n), x, count,
                              out + n, weights.rows);
}

} // namespace orchard::ORCHARD_ISA

#endif
