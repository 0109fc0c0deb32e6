// Products of 16-bit floats whose operands are packed in the order that an instruction requires.
//
// Each tile of the result is 32 x 32 and summed over all of k at once, so results do not depend on the number of
// threads.
//
//   for each block of columns whose panels fit in `tiled_panel_bytes`, in one fork-join:
//     pack b into panels of 32 columns                                    [threads share the panels]
//     for each task of rows and panels:
//       pack a's rows into tiles of 32; multiply each tile by each panel; round the sums
//
// k is padded with zeros to whole steps of 32, and rows and columns to whole tiles.
#pragma once

#include "../memory.h"
#include "../parallel.h"
#include "finish.h"
#include "grid.h"
#include "together.h"
#include "tuning.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

namespace orchard::ORCHARD_ISA {

constexpr int64_t side = 32; // rows and columns of a tile, and numbers of a step along k

// Packs 32 rows of a or 32 columns of b from `first` on, for all of k: each step has 32 numbers of each row or column.
using PackLanes = void (*)(const MatrixProduct &product, int64_t first, int64_t steps, uint16_t *out);

// 32 rows of a, packed or in place (adjacent along k). Strides are from row to row and from step to step.
struct TileRows {
  const uint16_t *numbers;
  int64_t row_stride = side, step_stride = side * side;
};

// Computes the sums of a tile, stored row-major.
using MultiplyTile = void (*)(const TileRows &a, const uint16_t *b, int64_t steps, float *sums);

// Rounds a tile's sums to elements of the result.
using RoundTile = void (*)(const float *sums, uint16_t *out, int64_t row_stride);

struct TileMethod {
  PackLanes pack_rows, pack_columns;
  MultiplyTile multiply;
  bool reads_rows_in_place = false; // supported if they are adjacent along k
  RoundTile round = nullptr;        // optional
  // Called before and after the tiles that a thread computes in sequence; may be null.
  void (*begin)() = nullptr, (*end)() = nullptr;
};

template <class S> class TiledProduct {
public:
  TiledProduct(const MatrixProduct &product, const TileMethod &method)
      : p_(product), method_(method), steps_(divided_up(p_.k, side)), tile_(steps_ * side * side),
        reads_in_place_(method.reads_rows_in_place && p_.a.column_stride == 1 && p_.k % side == 0 &&
                        std::abs(p_.a.row_stride) <= tuning::matmul::most_row_in_place &&
                        p_.n <= tuning::matmul::most_tiled_panels_in_place * side),
        is_plain_(p_.alpha == 1 && !p_.has_input() && p_.out.column_stride == 1) {}

  void run() {
    if (p_.epilogue) p_.epilogue->is_taken = true;
    const int64_t panels = divided_up(p_.n, side),
                  block = std::clamp<int64_t>(tuning::matmul::tiled_panel_bytes / 2 / std::max<int64_t>(tile_, 1), 1,
                                              panels);
    Scratch<uint16_t> packed(block * tile_);
    for (int64_t first = 0; first < panels; first += block)
      multiply_panels(first, std::min(block, panels - first), packed.data());
  }

private:
  static constexpr int64_t divided_up(int64_t value, int64_t by) { return (value + by - 1) / by; }

  void multiply_panels(int64_t first, int64_t count, uint16_t *packed) const {
    const int64_t tiles = divided_up(p_.m, side),
                  threads = threads_worth(p_.operations() / tuning::matmul::tiled_speed, threads_at_hand());
    const int64_t most_tiles = std::max<int64_t>(1, tuning::matmul::row_block_bytes / 2 / std::max<int64_t>(tile_, 1));
    const auto [height, share] = best_task({tiles, count, most_tiles}, threads);
    const int64_t shares = divided_up(count, share), tasks = divided_up(tiles, height) * shares,
                  workers = std::min(threads, tasks), row_numbers = height * tile_;
    Scratch<uint16_t> rows(workers * row_numbers);
    Together packing(count);
    std::atomic<int64_t> next{0};
    parallel_for(workers, 1, [&, share = share, height = height](int64_t worker, int64_t) {
      packing.run(
          [&](int64_t panel) { method_.pack_columns(p_, (first + panel) * side, steps_, packed + panel * tile_); });
      if (method_.begin) method_.begin();
      for (int64_t task; (task = next.fetch_add(1)) < tasks;) {
        const int64_t tile = task / shares * height, panel = task % shares * share;
        multiply_block({tile, std::min(tile + height, tiles), first + panel, first + std::min(panel + share, count)},
                       packed + panel * tile_, rows.data() + worker * row_numbers);
      }
      if (method_.end) method_.end();
    });
  }

  struct Block {
    int64_t tile, end_tile, panel, end_panel;
  };

  void multiply_block(const Block &block, const uint16_t *panels, uint16_t *rows) const {
    for (int64_t tile = block.tile; tile < block.end_tile; tile++)
      if (!is_in_place(tile)) method_.pack_rows(p_, tile * side, steps_, rows + (tile - block.tile) * tile_);
    alignas(64) float sums[side * side];
    for (int64_t panel = block.panel; panel < block.end_panel; panel++, panels += tile_)
      for (int64_t tile = block.tile; tile < block.end_tile; tile++) {
        method_.multiply(rows_of(tile, rows + (tile - block.tile) * tile_), panels, steps_, sums);
        finish_tile(tile * side, panel * side, sums);
      }
    if (p_.epilogue)
      p_.epilogue->run(p_.epilogue->context, {block.tile * side, std::min(block.end_tile * side, p_.m),
                                              block.panel * side, std::min(block.end_panel * side, p_.n)});
  }

  // Tiles without padding rows are read in place, if the method supports it.
  bool is_in_place(int64_t tile) const { return reads_in_place_ && (tile + 1) * side <= p_.m; }
  TileRows rows_of(int64_t tile, const uint16_t *packed) const {
    if (!is_in_place(tile)) return {packed};
    return {reinterpret_cast<const uint16_t *>(element_of<S>(p_.a, tile * side, 0)), p_.a.row_stride, side};
  }

  // Rounds whole tiles of a plain result directly, without the checks that other tiles need.
  void finish_tile(int64_t row, int64_t column, float *sums) const {
    const int64_t rows = std::min(side, p_.m - row), columns = std::min(side, p_.n - column);
    const bool is_whole = columns == side && is_plain_;
    if (is_whole && rows == side && method_.round)
      return method_.round(sums, reinterpret_cast<uint16_t *>(const_cast<S *>(element_of<S>(p_.out, row, column))),
                           p_.out.row_stride);
    for (int64_t r = 0; r < rows; r++)
      if (is_whole) narrow(sums + r * side, const_cast<S *>(element_of<S>(p_.out, row + r, column)), side);
      else finish_row<S>(p_, row + r, column, columns, sums + r * side);
  }

  const MatrixProduct &p_;
  const TileMethod &method_;
  const int64_t steps_, tile_; // sizes of a tile of a and of a panel of b, in numbers
  const bool reads_in_place_, is_plain_;
};

} // namespace orchard::ORCHARD_ISA
