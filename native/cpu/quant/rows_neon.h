// Row readers for NEON, which return levels as vectors of floats.
#pragma once

#include "group_row.h"
#include "levels_neon.h"
#include "weights.h"

#include <algorithm>

#if defined(__aarch64__)

namespace orchard::ORCHARD_ISA {

constexpr int float_lanes = 4;
using Floats = float32x4_t;

inline Floats floats_at(const float *from) { return vld1q_f32(from); }
inline Floats fused(Floats a, Floats b, Floats sum) { return vfmaq_f32(sum, a, b); }
inline Floats all_of(float value) { return vdupq_n_f32(value); }

// Returns levels 4 · at to 4 · at + 3 as floats.
template <bool is_unsigned> inline Floats floats_of(PartLevels levels, int at) {
  const int8x16_t half = at < 4 ? levels.first : levels.second;
  const int8x8_t eight = at & 2 ? vget_high_s8(half) : vget_low_s8(half);
  if constexpr (is_unsigned) {
    const uint16x8_t wide = vmovl_u8(vreinterpret_u8_s8(eight));
    return vcvtq_f32_u32(vmovl_u16(at & 1 ? vget_high_u16(wide) : vget_low_u16(wide)));
  }
  const int16x8_t wide = vmovl_s8(eight);
  return vcvtq_f32_s32(vmovl_s16(at & 1 ? vget_high_s16(wide) : vget_low_s16(wide)));
}

inline float sum_of(Floats vector) {
  float numbers[float_lanes];
  vst1q_f32(numbers, vector);
  return (numbers[0] + numbers[2]) + (numbers[1] + numbers[3]);
}

// Reads rows of blocks: the scales and the levels of a block.
template <class Format> struct LevelRow : LevelsOf<Format> {
  static constexpr bool has_groups = false; // whether scales are stored apart from levels
  using typename LevelsOf<Format>::Head;
  static constexpr bool is_wide = false; // whether levels are 0 to 255
  static constexpr int block_parts = Format::values / 32, block_bytes = Format::bytes;
  const uint8_t *row;

  LevelRow(const Weights &weights, int64_t at) : row(weights.packed + at * weights.row_bytes) {}
  Head head(int64_t block) const { return Head(row + block * Format::bytes); }
  PartLevels levels(int64_t block, int part) const { return LevelsOf<Format>::of(row + block * Format::bytes, part); }
  static Floats floats(PartLevels levels, int at) { return floats_of<false>(levels, at); }
};

// Reads rows of groups, eight parts at a time, fewer at the end. The levels of symmetric groups are centered at 0.
template <int bits, bool is_symmetric> struct GroupLevelRow : GroupRow {
  static constexpr bool has_groups = true;
  static constexpr bool has_low = !is_symmetric, has_halves = false, is_wide = bits == 8 && !is_symmetric;
  static constexpr int block_parts = 8, block_bytes = 8 * bits * 4;
  using Head = ManyHead<8>;
  using GroupRow::GroupRow;
  Head head(int64_t block) const {
    Head result = {};
    numbers(scales, block, result.scales);
    if constexpr (has_low) numbers(biases, block, result.lows);
    return result;
  }
  PartLevels levels(int64_t block, int part) const {
    const PartLevels raw = group_levels<bits>(row + (block * 8 + part) * bits * 4);
    return is_symmetric ? lowered(raw, int8_t(1 << (bits - 1))) : raw;
  }
  static Floats floats(PartLevels levels, int at) { return floats_of<is_wide>(levels, at); }

private:
  // Writes the scales of a block's groups, one for each part.
  void numbers(const void *all, int64_t block, float *out) const {
    const int64_t group = first_group + (block * 8 >> shift), count = std::min<int64_t>(8, parts - block * 8);
    const int64_t groups = (count + (int64_t(1) << shift) - 1) >> shift;
    float group_numbers[8];
    if (dtype == DType::float16) widen(static_cast<const Float16 *>(all) + group, group_numbers, groups);
    else if (dtype == DType::bfloat16) widen(static_cast<const BFloat16 *>(all) + group, group_numbers, groups);
    else std::copy_n(static_cast<const float *>(all) + group, groups, group_numbers);
    for (int64_t part = 0; part < count; part++) out[part] = group_numbers[part >> shift];
  }
};

} // namespace orchard::ORCHARD_ISA

#endif
