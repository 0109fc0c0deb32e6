// Dot products of bytes on NEON, with the best instructions of the processor: products of Armv8.0, SDOT (FEAT_DotProd),
// or SMMLA (FEAT_I8MM). All compute exactly in integers, so the results are the same.
#pragma once

#include "fast.h"

#if defined(__aarch64__)

#include <arm_neon.h>

namespace orchard::ORCHARD_ISA {

constexpr int chunk_rows = 4, chunk_parts = 8; // rows of weights in a chunk, and parts of each row

// The unpacked levels of some rows of weights: 32 bytes per part, which stay in the L1 cache.
using ChunkLevels = int8_t[chunk_rows][chunk_parts][32];

// The levels of a part of x, in two halves of 16.
struct XPart {
  const int8_t *first;

  XPart(const ByteRows &x, int64_t part) : first(x.levels + part / 2 * 64 + part % 2 * 16) {}
  const int8_t *second() const { return first + 32; }
};

// Computes the dot products of some rows of x with all rows of a chunk, for the parts from `first` on: one for each
// part, or one for each half of a part.
//
//   dots[at][part][row] = Σ x level         or         dots[at][2 part + half][row]
struct DotsOfChunk {
  const ChunkLevels &levels;
  const ByteRows *xs;
  int count;
  int64_t first;
  int parts;
  bool by_halves;
  int32_t (*dots)[2 * chunk_parts][chunk_rows];
};

// Reduces four vectors of four lanes each to a vector of their four sums.
inline int32x4_t sums_of(int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d) {
  return vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d));
}

// Stores the sums of the products of a part's halves. Without `by_halves`, those of the second half include the first.
inline void store_dots(const DotsOfChunk &chunk, int at, int part, const int32x4_t (&first)[chunk_rows],
                       const int32x4_t (&second)[chunk_rows]) {
  const int32x4_t last = sums_of(second[0], second[1], second[2], second[3]);
  if (!chunk.by_halves) return vst1q_s32(chunk.dots[at][part], last);
  vst1q_s32(chunk.dots[at][2 * part], sums_of(first[0], first[1], first[2], first[3]));
  vst1q_s32(chunk.dots[at][2 * part + 1], last);
}

// Adds sixteen products: pairs are summed in 16 bits, which suffice for 2 · 127 · 128, and then in 32 bits.
inline int32x4_t add_plain(int32x4_t sum, int8x16_t a, int8x16_t b) {
  const int16x8_t low = vmull_s8(vget_low_s8(a), vget_low_s8(b));
  return vpadalq_s16(sum, vmlal_s8(low, vget_high_s8(a), vget_high_s8(b)));
}

inline void dots_by_products(const DotsOfChunk &chunk) {
  for (int part = 0; part < chunk.parts; part++)
    for (int at = 0; at < chunk.count; at++) {
      const XPart x(chunk.xs[at], chunk.first + part);
      const int8x16_t left = vld1q_s8(x.first), right = vld1q_s8(x.second());
      int32x4_t first[chunk_rows], second[chunk_rows];
#pragma GCC unroll 4
      for (int row = 0; row < chunk_rows; row++) {
        const int8_t *levels = chunk.levels[row][part];
        first[row] = add_plain(vdupq_n_s32(0), vld1q_s8(levels), left);
        second[row] = add_plain(chunk.by_halves ? vdupq_n_s32(0) : first[row], vld1q_s8(levels + 16), right);
      }
      store_dots(chunk, at, part, first, second);
    }
}

__attribute__((target("arch=armv8.2-a+dotprod"))) inline void dots_by_sdot(const DotsOfChunk &chunk) {
  for (int part = 0; part < chunk.parts; part++)
    for (int at = 0; at < chunk.count; at++) {
      const XPart x(chunk.xs[at], chunk.first + part);
      const int8x16_t left = vld1q_s8(x.first), right = vld1q_s8(x.second());
      int32x4_t first[chunk_rows], second[chunk_rows];
#pragma GCC unroll 4
      for (int row = 0; row < chunk_rows; row++) {
        const int8_t *levels = chunk.levels[row][part];
        first[row] = vdotq_s32(vdupq_n_s32(0), vld1q_s8(levels), left);
        second[row] = vdotq_s32(chunk.by_halves ? vdupq_n_s32(0) : first[row], vld1q_s8(levels + 16), right);
      }
      store_dots(chunk, at, part, first, second);
    }
}

// Multiplies two rows of x with two rows of weights: each register has eight bytes of both rows, or 2 x 2 sums. An odd
// last row of x is multiplied by SDOT.
__attribute__((target("arch=armv8.2-a+dotprod+i8mm"))) inline void dots_by_smmla(const DotsOfChunk &chunk) {
  int at = 0;
  for (; at + 2 <= chunk.count; at += 2)
    for (int part = 0; part < chunk.parts; part++) {
      const XPart one(chunk.xs[at], chunk.first + part), other(chunk.xs[at + 1], chunk.first + part);
      const int64x2_t x[2][2] = {
          {vreinterpretq_s64_s8(vld1q_s8(one.first)), vreinterpretq_s64_s8(vld1q_s8(other.first))},
          {vreinterpretq_s64_s8(vld1q_s8(one.second())), vreinterpretq_s64_s8(vld1q_s8(other.second()))}};
      int32x4_t sums[2][2]; // for each half, and each pair of rows
#pragma GCC unroll 2
      for (int r = 0; r < 2; r++)
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) {
          const int64x2_t upper = vreinterpretq_s64_s8(vld1q_s8(chunk.levels[2 * r][part] + 16 * half)),
                          lower = vreinterpretq_s64_s8(vld1q_s8(chunk.levels[2 * r + 1][part] + 16 * half));
          const int32x4_t sum = half == 0 || chunk.by_halves ? vdupq_n_s32(0) : sums[0][r];
          const int32x4_t begun = vmmlaq_s32(sum, vreinterpretq_s8_s64(vzip1q_s64(x[half][0], x[half][1])),
                                             vreinterpretq_s8_s64(vzip1q_s64(upper, lower)));
          sums[half][r] = vmmlaq_s32(begun, vreinterpretq_s8_s64(vzip2q_s64(x[half][0], x[half][1])),
                                     vreinterpretq_s8_s64(vzip2q_s64(upper, lower)));
        }
      const int halves = chunk.by_halves ? 2 : 1;
      for (int half = 0; half < halves; half++) {
        const int32x4_t *half_sums = sums[chunk.by_halves ? half : 1];
        const int place = halves * part + half;
        vst1q_s32(chunk.dots[at][place], vcombine_s32(vget_low_s32(half_sums[0]), vget_low_s32(half_sums[1])));
        vst1q_s32(chunk.dots[at + 1][place], vcombine_s32(vget_high_s32(half_sums[0]), vget_high_s32(half_sums[1])));
      }
    }
  if (at < chunk.count)
    dots_by_sdot(
        {chunk.levels, chunk.xs + at, chunk.count - at, chunk.first, chunk.parts, chunk.by_halves, chunk.dots + at});
}

inline auto dots_of_isa() {
  if (current_isa() == Isa::bf16) return dots_by_smmla;
  return current_isa() >= Isa::dotprod ? dots_by_sdot : dots_by_products;
}

} // namespace orchard::ORCHARD_ISA

#endif
