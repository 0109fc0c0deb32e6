#include "pairs.h"

#if defined(__AVX512F__)

#include "../amx.h"
#include "tiled_product.h"
#include "transpose.h"

#include <algorithm>
#include <cstring>
#include <immintrin.h>

namespace orchard::ORCHARD_ISA {
namespace {

constexpr int64_t pairs = side / 2; // pairs per step

using Pair = uint32_t; // two adjacent numbers

inline uint16_t bits_at(const Matrix &matrix, int64_t row, int64_t column) {
  return element_of<BFloat16>(matrix, row, column)->bits;
}

// Interleaves two rows of `count` columns into pairs, and writes zeros up to 32 columns; a null row stands for zeros. A
// constant count lets the compiler vectorize the loop.
inline void interleave(const uint16_t *first, const uint16_t *second, int64_t count, Pair *out) {
  if (count == side && second) {
    for (int64_t c = 0; c < side; c++) out[c] = first[c] | Pair(second[c]) << 16;
    return;
  }
  for (int64_t c = 0; c < count; c++) out[c] = (first ? first[c] : 0) | Pair(second ? second[c] : 0) << 16;
  std::fill_n(out + count, side - count, 0);
}

// Packs b's columns from `column` on, for all of k: out[p][c] is the pair (b[2p][c], b[2p + 1][c]).
void pack_panel_of_pairs(const MatrixProduct &p, int64_t column, int64_t steps, Pair *out) {
  const int64_t count = std::min(side, p.n - column);
  for (int64_t pair = 0; pair < steps * pairs; pair++, out += side) {
    const int64_t step = 2 * pair, there = std::clamp<int64_t>(p.k - step, 0, 2);
    if (p.b.column_stride == 1 || there == 0) {
      const auto *first = there > 0 ? &element_of<BFloat16>(p.b, step, column)->bits : nullptr;
      interleave(first, there == 2 ? first + p.b.row_stride : nullptr, count, out);
      continue;
    }
    for (int64_t c = 0; c < count; c++)
      out[c] = bits_at(p.b, step, column + c) | (there == 2 ? Pair(bits_at(p.b, step + 1, column + c)) << 16 : 0);
    std::fill_n(out + count, side - count, 0);
  }
}

// Packs `count` columns of adjacent numbers, as pack_panel_of_pairs does: reads whole pairs, in squares that it
// transposes. Pairs are aligned, and `stride`, between columns, is even.
void pack_columns(const uint16_t *in, int64_t stride, int64_t count, int64_t k, Pair *out) {
  const int64_t even = k / 2;
  pack_panel<float, side>(reinterpret_cast<const float *>(in), stride / 2, 1, count, even,
                          reinterpret_cast<float *>(out));
  if (k % 2 == 0) return;
  out += even * side;
  for (int64_t c = 0; c < count; c++) out[c] = in[c * stride + k - 1];
  std::fill_n(out + count, side - count, 0);
}

// Packs columns of b with adjacent numbers. Columns with odd strides or unaligned pairs are copied first, which takes
// much less time than packing them number by number.
void pack_panel_of_columns(const MatrixProduct &p, int64_t column, int64_t steps, Pair *out) {
  constexpr int64_t depth = 256;
  const int64_t count = std::min(side, p.n - column), stride = p.b.column_stride, all = (p.k + 1) / 2;
  const uint16_t *in = &element_of<BFloat16>(p.b, 0, column)->bits;
  std::fill_n(out + all * side, (steps * pairs - all) * side, 0);
  if (stride % 2 == 0 && reinterpret_cast<uintptr_t>(in) % alignof(Pair) == 0)
    return pack_columns(in, stride, count, p.k, out);
  alignas(Pair) uint16_t copied[side * depth];
  for (int64_t start = 0; start < p.k; start += depth) {
    const int64_t length = std::min(depth, p.k - start);
    for (int64_t c = 0; c < count; c++)
      std::memcpy(copied + c * depth, in + c * stride + start, size_t(length) * sizeof *in);
    pack_columns(copied, depth, count, length, out + start / 2 * side);
  }
}

// Packs 32 rows of a from `row` on, for all of k, step by step: out[step][r] has 32 numbers of a row.
void pack_rows(const MatrixProduct &p, int64_t row, int64_t steps, uint16_t *out) {
  const int64_t count = std::min(side, p.m - row);
  for (int64_t step = 0; step < steps; step++, out += side * side) {
    const int64_t first = step * side, length = std::min(side, p.k - first);
    for (int64_t r = 0; r < count; r++) {
      uint16_t *to = out + r * side;
      if (p.a.column_stride == 1 && length == side) {
        std::memcpy(to, element_of<BFloat16>(p.a, row + r, first), size_t(side) * 2);
        continue;
      }
      if (p.a.column_stride == 1) std::memcpy(to, element_of<BFloat16>(p.a, row + r, first), size_t(length) * 2);
      else
        for (int64_t k = 0; k < length; k++) to[k] = bits_at(p.a, row + r, first + k);
      std::fill_n(to + length, side - length, 0);
    }
    std::fill_n(out + count * side, (side - count) * side, 0);
  }
}

// Packs rows of a if the numbers of a column are adjacent: transposes squares of pairs, each from two columns.
void pack_rows_of_columns(const MatrixProduct &p, int64_t row, int64_t steps, uint16_t *out) {
  const int64_t count = std::min(side, p.m - row);
  Pair square[pairs * side];
  for (int64_t step = 0; step < steps; step++, out += side * side) {
    for (int64_t pair = 0; pair < pairs; pair++) {
      Pair *to = square + pair * side;
      const int64_t k = step * side + 2 * pair, there = std::clamp<int64_t>(p.k - k, 0, 2);
      const auto *first = there > 0 ? &element_of<BFloat16>(p.a, row, k)->bits : nullptr;
      interleave(first, there == 2 ? first + p.a.column_stride : nullptr, count, to);
    }
    for (int64_t half = 0; half < side; half += lanes<float>)
      transpose_square(reinterpret_cast<const float *>(square) + half, side,
                       reinterpret_cast<float *>(out) + half * pairs, pairs);
  }
}

void pack_b(const MatrixProduct &p, int64_t column, int64_t steps, uint16_t *out) {
  (p.b.row_stride == 1 && p.b.column_stride != 1 ? pack_panel_of_columns : pack_panel_of_pairs)(
      p, column, steps, reinterpret_cast<Pair *>(out));
}

void pack_a(const MatrixProduct &p, int64_t row, int64_t steps, uint16_t *out) {
  (p.a.column_stride != 1 && p.a.row_stride == 1 ? pack_rows_of_columns : pack_rows)(p, row, steps, out);
}

// Computes eight rows of sums at a time, with two vectors each.
__attribute__((target("avx512bf16"))) void multiply_by_vectors(const TileRows &a, const uint16_t *b, int64_t steps,
                                                               float *sums) {
  constexpr int rows = 8;
  const int64_t stride = a.row_stride, step_stride = a.step_stride;
  for (int64_t row = 0; row < side; row += rows) {
    __m512 sum[rows][2];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = _mm512_setzero_ps();
    const uint16_t *from = a.numbers + row * stride, *columns = b;
    for (int64_t step = 0; step < steps; step++, from += step_stride) {
      for (int64_t pair = 0; pair < pairs; pair++, columns += 2 * side) {
        const auto left = (__m512bh)_mm512_loadu_si512(columns), right = (__m512bh)_mm512_loadu_si512(columns + side);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
          int both;
          std::memcpy(&both, from + r * stride + 2 * pair, sizeof both);
          const auto factor = (__m512bh)_mm512_set1_epi32(both);
          sum[r][0] = _mm512_dpbf16_ps(sum[r][0], left, factor);
          sum[r][1] = _mm512_dpbf16_ps(sum[r][1], right, factor);
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
      _mm512_store_ps(sums + (row + r) * side, sum[r][0]);
      _mm512_store_ps(sums + (row + r) * side + side / 2, sum[r][1]);
    }
  }
}

// The tile registers are configured once for all tiles of a thread, and released afterwards: while they are in use,
// each context switch saves and restores them.
__attribute__((target("amx-tile"))) void set_tiles_up() {
  static constexpr TileConfiguration configuration;
  _tile_loadconfig(&configuration);
}
__attribute__((target("amx-tile"))) void release_tiles() { _tile_release(); }

// Computes four tiles of 16 x 16 sums.
__attribute__((target("amx-tile,amx-bf16"))) void multiply_by_tiles(const TileRows &rows, const uint16_t *b,
                                                                    int64_t steps, float *sums) {
  constexpr int b_bytes = side * 4, sum_bytes = side * 4;
  constexpr int64_t half = side / 2;
  const uint16_t *a = rows.numbers;
  const int64_t a_bytes = rows.row_stride * 2, lower = half * rows.row_stride;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t step = 0; step < steps; step++, a += rows.step_stride, b += side * side) {
    _tile_loadd(4, a, a_bytes);
    _tile_loadd(6, b, b_bytes);
    _tile_loadd(7, b + side, b_bytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + lower, a_bytes);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, sum_bytes);
  _tile_stored(1, sums + half, sum_bytes);
  _tile_stored(2, sums + half * side, sum_bytes);
  _tile_stored(3, sums + half * side + half, sum_bytes);
}

// Treats subnormal numbers as zeros; sums of these products are never subnormal.
__attribute__((target("avx512bf16"))) void round_tile(const float *sums, uint16_t *out, int64_t row_stride) {
  for (int64_t row = 0; row < side; row++, sums += side, out += row_stride) {
    const __m512bh numbers = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(sums + side / 2), _mm512_loadu_ps(sums));
    _mm512_storeu_si512(out, (__m512i)numbers);
  }
}

// A step of a is 32 rows of 32 numbers; a step of b is 16 pairs of 32 columns.
void by_vectors(const MatrixProduct &product) {
  TiledProduct<BFloat16>(product, {pack_a, pack_b, multiply_by_vectors, true, round_tile}).run();
}
void by_tiles(const MatrixProduct &product) {
  TiledProduct<BFloat16>(product, {pack_a, pack_b, multiply_by_tiles, true, round_tile, set_tiles_up, release_tiles})
      .run();
}

} // namespace

extern const PairProducts pair_products = {by_vectors, by_tiles, nullptr, nullptr};

} // namespace orchard::ORCHARD_ISA

#elif defined(__aarch64__)

#include "neon_tiles.h"

namespace orchard::ORCHARD_ISA {
extern const PairProducts pair_products = {nullptr, nullptr, multiply_by_bfmmla, multiply_by_fmlal};
} // namespace orchard::ORCHARD_ISA

#else

namespace orchard::ORCHARD_ISA {
extern const PairProducts pair_products = {};
} // namespace orchard::ORCHARD_ISA

#endif
