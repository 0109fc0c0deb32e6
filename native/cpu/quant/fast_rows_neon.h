// Products of rows of bytes with rows of weights on NEON. The levels of four rows of weights are unpacked to bytes once
// for all rows of x, eight parts of 32 values at a time. The sum of a part is an integer, so it is the same with all
// instructions; parts are added in float32, in order.
#pragma once

#include "byte_dots.h"
#include "few_rows.h"

#if defined(__aarch64__)

namespace orchard::ORCHARD_ISA {

constexpr int most_byte_rows = 16; // rows of x at once

// Eight parts of four rows of weights, with scales and lows for each part, or for each half.
struct WeightChunk {
  ChunkLevels levels;
  float scales[2 * chunk_parts][chunk_rows], lows[2 * chunk_parts][chunk_rows];
};

// Unpacks the parts of one row from `first` on.
template <class Row> void unpack_chunk(const Row &row, int64_t first, int parts, int at, WeightChunk &out) {
  constexpr int halves = Row::has_halves ? 2 : 1;
  for (int part = 0; part < parts;) {
    const int64_t block = (first + part) / Row::block_parts;
    const auto head = row.head(block);
    for (int block_part = 0; block_part < Row::block_parts && part < parts; block_part++, part++) {
      const PartLevels levels = row.levels(block, block_part);
      const int8x16_t turn = vdupq_n_s8(Row::is_wide ? -128 : 0); // 0 … 255 become −128 … 127
      vst1q_s8(out.levels[at][part], veorq_s8(levels.first, turn));
      vst1q_s8(out.levels[at][part] + 16, veorq_s8(levels.second, turn));
      for (int half = 0; half < halves; half++) {
        out.scales[halves * part + half][at] = head.scale(block_part, half);
        out.lows[halves * part + half][at] = head.low(block_part, half);
      }
    }
  }
}

inline int32_t sum_of_levels(const XPart &x) {
  return vaddlvq_s8(vld1q_s8(x.first)) + vaddlvq_s8(vld1q_s8(x.second()));
}

// Adds the products of the parts from `first` on, of one row of x with four rows of weights, to the sums.
template <class Row>
void add_chunk(const WeightChunk &chunk, const ByteRows &x, int64_t first, int parts,
               const int32_t (&dots)[2 * chunk_parts][chunk_rows], float (&sums)[chunk_rows]) {
  constexpr int halves = Row::has_halves ? 2 : 1;
  float32x4_t sum = vld1q_f32(sums);
  for (int part = 0; part < parts; part++) {
    const int64_t x_part = first + part;
    for (int half = 0; half < halves; half++) {
      const int at = halves * part + half;
      int32x4_t dot = vld1q_s32(dots[at]);
      if constexpr (Row::is_wide) dot = vaddq_s32(dot, vdupq_n_s32(128 * sum_of_levels(XPart(x, x_part))));
      sum = vfmaq_f32(sum, vcvtq_f32_s32(dot), vmulq_n_f32(vld1q_f32(chunk.scales[at]), x.scales[x_part]));
      if constexpr (Row::has_low) {
        const float x_sum = halves == 1 ? x.first_sums[x_part] + x.second_sums[x_part]
                            : half == 0 ? x.first_sums[x_part]
                                        : x.second_sums[x_part];
        sum = vfmaq_n_f32(sum, vld1q_f32(chunk.lows[at]), x_sum);
      }
    }
  }
  vst1q_f32(sums, sum);
}

// Multiplies `count` rows of x with up to four rows of weights from `n` on.
template <class Row>
void multiply_chunks(const Weights &weights, const ByteRows *xs, int count, int64_t n, int rows, float *out) {
  const auto find_dots = dots_of_isa();
  const int64_t parts = weights.columns / 32;
  float sums[most_byte_rows][chunk_rows] = {};
  int32_t dots[most_byte_rows][2 * chunk_parts][chunk_rows];
  WeightChunk chunk = {}; // missing rows are zeros
  for (int64_t first = 0; first < parts; first += chunk_parts) {
    const int part_count = int(std::min<int64_t>(chunk_parts, parts - first));
    for (int row = 0; row < rows; row++) unpack_chunk(Row(weights, n + row), first, part_count, row, chunk);
    find_dots({chunk.levels, xs, count, first, part_count, Row::has_halves, dots});
    for (int at = 0; at < count; at++) add_chunk<Row>(chunk, xs[at], first, part_count, dots[at], sums[at]);
  }
  for (int at = 0; at < count; at++)
    for (int row = 0; row < rows; row++) out[at * weights.rows + n + row] = sums[at][row];
}

template <class Row>
void multiply_bytes(const Weights &weights, const ByteRows &x, int64_t count, int64_t begin, int64_t end, float *out) {
  for (int64_t at = 0; at < count; at += most_byte_rows) {
    ByteRows xs[most_byte_rows];
    const int row_count = int(std::min<int64_t>(most_byte_rows, count - at));
    for (int i = 0; i < row_count; i++) xs[i] = x.row(at + i);
    for (int64_t n = begin; n < end; n += chunk_rows)
      multiply_chunks<Row>(weights, xs, row_count, n, int(std::min<int64_t>(chunk_rows, end - n)),
                           out + at * weights.rows);
  }
}

} // namespace orchard::ORCHARD_ISA

#endif
