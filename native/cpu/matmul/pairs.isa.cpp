// Each tile of the result is 32 x 32 and summed over all of k at once, so that a number is the same sum in the same
// order for any number of threads.
//
//   for each block of columns whose panels fit `panel_bytes`:
//     pack b into panels of 32 columns, the pairs of a step adjacent      [threads share the panels]
//     for each block of rows and share of the panels, in parallel:
//       pack a's rows into tiles of 32; multiply each tile with each panel; round the sums
//
// k is filled up with zeros to whole steps of 32, rows and columns to whole tiles.
#include "pairs.h"

#if defined(__AVX512F__)

#include "../memory.h"
#include "../parallel.h"
#include "finish.h"
#include "transpose.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <immintrin.h>

namespace orchard::ORCHARD_ISA {
namespace {

constexpr int64_t side = 32;                            // of a tile, and of a step along k
constexpr int64_t pairs = side / 2;                     // of a step
constexpr int64_t panel_bytes = int64_t(64) << 20;      // of b's panels, where one of them is not larger
constexpr int64_t row_block_bytes = int64_t(512) << 10; // of a's packed rows, in the second-level cache
constexpr int64_t shares_of_thread = 3;                 // so that no thread waits long for the last one

constexpr int64_t divided_up(int64_t value, int64_t by) { return (value + by - 1) / by; }

using Pair = uint32_t; // two adjacent numbers

// The sums of a tile: `steps` blocks of a (32 rows of 32 numbers) and of b (16 pairs of 32 columns).
using MultiplyTile = void (*)(const uint16_t *a, const uint16_t *b, int64_t steps, float *sums);

inline uint16_t bits_at(const Matrix &matrix, int64_t row, int64_t column) {
  return element_of<BFloat16>(matrix, row, column)->bits;
}

// The pairs of two rows of `count` columns, and zeros up to 32; null stands for a row of zeros. A count that the
// compiler knows makes vectors of it.
inline void interleave(const uint16_t *first, const uint16_t *second, int64_t count, Pair *out) {
  if (count == side && second) {
    for (int64_t c = 0; c < side; c++) out[c] = first[c] | Pair(second[c]) << 16;
    return;
  }
  for (int64_t c = 0; c < count; c++) out[c] = (first ? first[c] : 0) | Pair(second ? second[c] : 0) << 16;
  std::fill_n(out + count, side - count, 0);
}

// b's columns from `column` on, for all of k: out[p][c] is the pair (b[2p][c], b[2p + 1][c]).
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

// Columns whose numbers are adjacent: pairs are read whole, in squares that are transposed.
void pack_panel_of_columns(const MatrixProduct &p, int64_t column, int64_t steps, Pair *out) {
  const int64_t even = p.k / 2, count = std::min(side, p.n - column);
  pack_panel<float, side>(reinterpret_cast<const float *>(element_of<BFloat16>(p.b, 0, column)), p.b.column_stride / 2,
                          1, count, even, reinterpret_cast<float *>(out));
  std::fill_n(out + even * side, (steps * pairs - even) * side, 0);
  if (p.k % 2 == 1)
    for (int64_t c = 0; c < count; c++) out[even * side + c] = bits_at(p.b, p.k - 1, column + c);
}

// 32 rows of a from `row` on, for all of k, in steps: out[step][r] is a row's 32 numbers.
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

// The same where the numbers of a column are adjacent: pairs of two columns, in squares that are transposed.
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

class PairMultiplication {
public:
  PairMultiplication(const MatrixProduct &product, MultiplyTile multiply)
      : p_(product), multiply_(multiply), steps_(divided_up(p_.k, side)), tile_(steps_ * side * side) {}

  void run() {
    const int64_t panels = divided_up(p_.n, side),
                  block = std::clamp<int64_t>(panel_bytes / 2 / std::max<int64_t>(tile_, 1), 1, panels);
    Scratch<uint16_t> packed(block * tile_);
    for (int64_t first = 0; first < panels; first += block) {
      const int64_t count = std::min(block, panels - first);
      pack_panels_of_b(first, count, packed.data());
      multiply_panels(first, count, packed.data());
    }
  }

private:
  void pack_panels_of_b(int64_t first, int64_t count, uint16_t *packed) const {
    const bool is_aligned = reinterpret_cast<uintptr_t>(p_.b.data) % alignof(Pair) == 0; // of every pair, then
    const bool has_columns = p_.b.row_stride == 1 && p_.b.column_stride % 2 == 0 && is_aligned;
    const auto pack = has_columns ? pack_panel_of_columns : pack_panel_of_pairs;
    const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(tile_, 1));
    parallel_for(count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; panel++)
        pack(p_, (first + panel) * side, steps_, reinterpret_cast<Pair *>(packed + panel * tile_));
    });
  }

  void multiply_panels(int64_t first, int64_t count, const uint16_t *packed) const {
    const int64_t tiles = divided_up(p_.m, side), threads = p_.operations() < 1e6 ? 1 : thread_count();
    const int64_t most_tiles = std::max<int64_t>(1, row_block_bytes / 2 / std::max<int64_t>(tile_, 1));
    const int64_t height = std::clamp<int64_t>(tiles / (shares_of_thread * threads), 1, most_tiles),
                  row_blocks = divided_up(tiles, height);
    const int64_t parts = row_blocks >= threads ? 1 : divided_up(shares_of_thread * threads, row_blocks),
                  share = divided_up(count, std::min(parts, count)), shares = divided_up(count, share);
    const int64_t tasks = row_blocks * shares, workers = std::min(threads, tasks);
    Scratch<uint16_t> rows(workers * height * tile_);
    std::atomic<int64_t> next{0};
    parallel_for(workers, 1, [&](int64_t worker, int64_t) {
      uint16_t *own = rows.data() + worker * height * tile_;
      for (int64_t task; (task = next.fetch_add(1)) < tasks;) {
        const int64_t tile = task / shares * height, panel = task % shares * share;
        multiply_block({tile, std::min(tile + height, tiles), first + panel, first + std::min(panel + share, count)},
                       packed + panel * tile_, own);
      }
    });
  }

  struct Block {
    int64_t tile, end_tile, panel, end_panel;
  };

  void multiply_block(const Block &block, const uint16_t *panels, uint16_t *rows) const {
    const auto pack = p_.a.column_stride != 1 && p_.a.row_stride == 1 ? pack_rows_of_columns : pack_rows;
    for (int64_t tile = block.tile; tile < block.end_tile; tile++)
      pack(p_, tile * side, steps_, rows + (tile - block.tile) * tile_);
    alignas(64) float sums[side * side];
    for (int64_t panel = block.panel; panel < block.end_panel; panel++, panels += tile_)
      for (int64_t tile = block.tile; tile < block.end_tile; tile++) {
        multiply_(rows + (tile - block.tile) * tile_, panels, steps_, sums);
        finish_tile(tile * side, panel * side, sums);
      }
  }

  // Whole rows of a plain result are rounded here, without the questions that others ask for each row.
  void finish_tile(int64_t row, int64_t column, float *sums) const {
    const int64_t rows = std::min(side, p_.m - row), columns = std::min(side, p_.n - column);
    const bool is_whole = columns == side && p_.alpha == 1 && !p_.has_input() && p_.out.column_stride == 1;
    for (int64_t r = 0; r < rows; r++)
      if (is_whole)
        narrow(sums + r * side, const_cast<BFloat16 *>(element_of<BFloat16>(p_.out, row + r, column)), side);
      else finish_row<BFloat16>(p_, row + r, column, columns, sums + r * side);
  }

  const MatrixProduct &p_;
  const MultiplyTile multiply_;
  const int64_t steps_, tile_; // numbers of a tile of a, and of a panel of b
};

// Eight rows of sums at a time, of two vectors each.
__attribute__((target("avx512bf16"))) void multiply_by_vectors(const uint16_t *a, const uint16_t *b, int64_t steps,
                                                               float *sums) {
  constexpr int rows = 8;
  for (int64_t row = 0; row < side; row += rows) {
    __m512 sum[rows][2];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = _mm512_setzero_ps();
    const uint16_t *from = a + row * side, *columns = b;
    for (int64_t step = 0; step < steps; step++, from += side * side) {
      for (int64_t pair = 0; pair < pairs; pair++, columns += 2 * side) {
        const auto left = (__m512bh)_mm512_loadu_si512(columns), right = (__m512bh)_mm512_loadu_si512(columns + side);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
          int both;
          std::memcpy(&both, from + r * side + 2 * pair, sizeof both);
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

// What the registers of tiles hold: eight of 16 rows of 64 bytes.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes_of_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Four tiles of 16 x 16 sums. The registers are set up and released for each, which a call takes in good part; they
// must be released before the thread does anything else, which would have to save them.
__attribute__((target("amx-tile,amx-bf16"))) void multiply_by_tiles(const uint16_t *a, const uint16_t *b, int64_t steps,
                                                                    float *sums) {
  static constexpr TileConfiguration configuration;
  constexpr int a_bytes = side * 2, b_bytes = side * 4, sum_bytes = side * 4;
  constexpr int64_t half = side / 2;
  _tile_loadconfig(&configuration);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t step = 0; step < steps; step++, a += side * side, b += side * side) {
    _tile_loadd(4, a, a_bytes);
    _tile_loadd(6, b, b_bytes);
    _tile_loadd(7, b + side, b_bytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + half * side, a_bytes);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, sum_bytes);
  _tile_stored(1, sums + half, sum_bytes);
  _tile_stored(2, sums + half * side, sum_bytes);
  _tile_stored(3, sums + half * side + half, sum_bytes);
  _tile_release();
}

void by_vectors(const MatrixProduct &product) { PairMultiplication(product, multiply_by_vectors).run(); }
void by_tiles(const MatrixProduct &product) { PairMultiplication(product, multiply_by_tiles).run(); }

} // namespace

extern const PairProducts pair_products = {by_vectors, by_tiles};

} // namespace orchard::ORCHARD_ISA

#else

namespace orchard::ORCHARD_ISA {
extern const PairProducts pair_products = {};
} // namespace orchard::ORCHARD_ISA

#endif
