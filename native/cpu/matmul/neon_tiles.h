// Products of bfloat16 and float16 by Arm's instructions BFMMLA (FEAT_BF16) and FMLAL (FEAT_FHM). Only functions that
// are called on processors with these instructions are compiled for them.
//
// The 32 rows of a in a tile, and the 32 columns of b in a panel, are called lanes. They are packed in four groups of
// eight, each for all of k. For BFMMLA, four consecutive numbers of a lane are adjacent; for FMLAL, the numbers of the
// eight lanes alternate.
#pragma once

#include "tiled_product.h"
#include "transpose.h"

#include <arm_neon.h>
#include <cstring>

namespace orchard::ORCHARD_ISA {
namespace {

constexpr int64_t group_lanes = 8, quad = 4;

// The numbers of some lanes: rows of a or columns of b.
struct LaneNumbers {
  const uint16_t *data;
  int64_t lane_stride, stride; // strides from lane to lane, and along k
  int64_t count, k;            // sizes without padding; the padding is zeros

  LaneNumbers(const Matrix &matrix, int64_t first, int64_t lanes, int64_t length)
      : data(reinterpret_cast<const uint16_t *>(matrix.data) + first * matrix.row_stride),
        lane_stride(matrix.row_stride), stride(matrix.column_stride), count(std::clamp<int64_t>(lanes, 0, group_lanes)),
        k(length) {}
  const uint16_t *at(int64_t lane, int64_t step) const { return data + lane * lane_stride + step * stride; }
  uint16_t number(int64_t lane, int64_t step) const { return lane < count && step < k ? *at(lane, step) : 0; }
  bool has_whole_lanes() const { return count == group_lanes; }
};

// Calls pack(numbers, steps, out) for each group of lanes.
template <class Pack>
void pack_groups(const Matrix &matrix, int64_t first, int64_t lanes, int64_t k, int64_t steps, uint16_t *out,
                 Pack pack) {
  const int64_t last = std::min(first + side, lanes);
  for (int64_t lane = first; lane < first + side; lane += group_lanes, out += steps * side * group_lanes)
    pack(LaneNumbers(matrix, std::min(lane, last), last - lane, k), steps * side, out);
}

// ---------------------------------------------------------------- four numbers at a time: BFMMLA

// out[q][lane][i] is number 4 q + i of a lane.
void pack_quads(const LaneNumbers &numbers, int64_t length, uint16_t *out) {
  for (int64_t step = 0; step < length; step += quad, out += group_lanes * quad) {
    const bool is_whole = numbers.has_whole_lanes() && step + quad <= numbers.k;
    if (is_whole && numbers.lane_stride == 1) {
      const auto row = [&](int64_t i) { return vld1q_u16(numbers.at(0, step + i)); };
      const uint16x8x4_t rows = {{row(0), row(1), row(2), row(3)}};
      vst4q_u16(out, rows);
    } else if (is_whole && numbers.stride == 1) {
      for (int64_t lane = 0; lane < group_lanes; lane++) std::memcpy(out + lane * quad, numbers.at(lane, step), 8);
    } else {
      for (int64_t lane = 0; lane < group_lanes; lane++)
        for (int64_t i = 0; i < quad; i++) out[lane * quad + i] = numbers.number(lane, step + i);
    }
  }
}

// Computes squares of 8 x 8 sums. Each register has 2 x 2 sums: rows 2 r and 2 r + 1, columns 2 c and 2 c + 1.
__attribute__((target("arch=armv8.2-a+bf16"))) void multiply_quads(const TileRows &rows, const uint16_t *b,
                                                                   int64_t steps, float *sums) {
  const int64_t length = steps * side, group = length * group_lanes;
  const uint16_t *a = rows.numbers;
  for (int64_t row = 0; row < side; row += group_lanes, a += group) {
    const uint16_t *columns = b;
    for (int64_t column = 0; column < side; column += group_lanes, columns += group) {
      float32x4_t sum[4][4];
#pragma GCC unroll 4
      for (int r = 0; r < 4; r++)
#pragma GCC unroll 4
        for (int c = 0; c < 4; c++) sum[r][c] = vdupq_n_f32(0);
      for (int64_t at = 0; at < group; at += group_lanes * quad) {
        bfloat16x8_t left[4], right[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
          left[i] = vreinterpretq_bf16_u16(vld1q_u16(a + at + i * 8));
          right[i] = vreinterpretq_bf16_u16(vld1q_u16(columns + at + i * 8));
        }
#pragma GCC unroll 4
        for (int r = 0; r < 4; r++)
#pragma GCC unroll 4
          for (int c = 0; c < 4; c++) sum[r][c] = vbfmmlaq_f32(sum[r][c], left[r], right[c]);
      }
      float *out = sums + row * side + column;
#pragma GCC unroll 4
      for (int r = 0; r < 4; r++)
#pragma GCC unroll 4
        for (int c = 0; c < 4; c++) {
          vst1_f32(out + 2 * r * side + 2 * c, vget_low_f32(sum[r][c]));
          vst1_f32(out + (2 * r + 1) * side + 2 * c, vget_high_f32(sum[r][c]));
        }
    }
  }
}

// ---------------------------------------------------------------- one number at a time: FMLAL

// out[k][lane] is number k of a lane.
void pack_singles(const LaneNumbers &numbers, int64_t length, uint16_t *out) {
  int64_t step = 0;
  if (numbers.has_whole_lanes() && numbers.lane_stride == 1)
    for (; step < numbers.k; step++) std::memcpy(out + step * group_lanes, numbers.at(0, step), 16);
  if (numbers.has_whole_lanes() && numbers.stride == 1)
    for (; step + group_lanes <= numbers.k; step += group_lanes)
      transpose_square<uint16_t>(numbers.at(0, step), numbers.lane_stride, out + step * group_lanes, group_lanes);
  for (; step < length; step++)
    for (int64_t lane = 0; lane < group_lanes; lane++) out[step * group_lanes + lane] = numbers.number(lane, step);
}

// Computes squares of 8 x 8 sums. One register has the first four columns of a row, another has the others.
__attribute__((target("arch=armv8.2-a+fp16fml"))) void multiply_singles(const TileRows &rows, const uint16_t *b,
                                                                        int64_t steps, float *sums) {
  const int64_t length = steps * side, group = length * group_lanes;
  const uint16_t *a = rows.numbers;
  for (int64_t row = 0; row < side; row += group_lanes, a += group) {
    const uint16_t *columns = b;
    for (int64_t column = 0; column < side; column += group_lanes, columns += group) {
      float32x4_t sum[8][2];
#pragma GCC unroll 8
      for (int r = 0; r < 8; r++) sum[r][0] = sum[r][1] = vdupq_n_f32(0);
      for (int64_t at = 0; at < group; at += group_lanes) {
        const float16x8_t left = vreinterpretq_f16_u16(vld1q_u16(a + at)),
                          right = vreinterpretq_f16_u16(vld1q_u16(columns + at));
        // A macro, since the lane number must be a constant in the instruction.
#define ORCHARD_ADD_ROW(r)                                                                                             \
  sum[r][0] = vfmlalq_laneq_low_f16(sum[r][0], right, left, r);                                                        \
  sum[r][1] = vfmlalq_laneq_high_f16(sum[r][1], right, left, r)
        ORCHARD_ADD_ROW(0);
        ORCHARD_ADD_ROW(1);
        ORCHARD_ADD_ROW(2);
        ORCHARD_ADD_ROW(3);
        ORCHARD_ADD_ROW(4);
        ORCHARD_ADD_ROW(5);
        ORCHARD_ADD_ROW(6);
        ORCHARD_ADD_ROW(7);
#undef ORCHARD_ADD_ROW
      }
      float *out = sums + row * side + column;
#pragma GCC unroll 8
      for (int r = 0; r < 8; r++) {
        vst1q_f32(out + r * side, sum[r][0]);
        vst1q_f32(out + r * side + 4, sum[r][1]);
      }
    }
  }
}

// ---------------------------------------------------------------- products

template <void (*pack)(const LaneNumbers &, int64_t, uint16_t *)>
void pack_rows_of_a(const MatrixProduct &p, int64_t first, int64_t steps, uint16_t *out) {
  pack_groups(p.a, first, p.m, p.k, steps, out, pack);
}

template <void (*pack)(const LaneNumbers &, int64_t, uint16_t *)>
void pack_columns_of_b(const MatrixProduct &p, int64_t first, int64_t steps, uint16_t *out) {
  pack_groups(p.b.transposed(), first, p.n, p.k, steps, out, pack);
}

void multiply_by_bfmmla(const MatrixProduct &product) {
  TiledProduct<BFloat16>(product, {pack_rows_of_a<pack_quads>, pack_columns_of_b<pack_quads>, multiply_quads}).run();
}

void multiply_by_fmlal(const MatrixProduct &product) {
  TiledProduct<Float16>(product, {pack_rows_of_a<pack_singles>, pack_columns_of_b<pack_singles>, multiply_singles})
      .run();
}

} // namespace
} // namespace orchard::ORCHARD_ISA
