// A blocked matrix product after Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008).
//
//   for each block of columns (of b and the result), as many as fit in a cache:
//     pack b's columns for all of k, unless they are read in place                [threads share the panels]
//     for each task of rows and columns of the result:
//       for each block of k, for each tile's rows:
//         pack a's numbers, or read them in place; sum tiles of the result
//
// The tiles of a plain product are summed directly in the result. Others are summed in a buffer per thread, and the
// epilogue runs after the last block of k: alpha * sum + beta * input, rounded once to the dtype.
//
// The blocks of k depend on k only, and partial blocks end at tiles, so results do not depend on the number of threads.
#include "kernel.h"

#include "../memory.h"
#include "../parallel.h"
#include "few_rows.h"
#include "finish.h"
#include "grid.h"
#include "outer.h"
#include "pack.h"
#include "small.h"
#include "split.h"
#include "tile.h"
#include "tuning.h"

#include <algorithm>
#include <atomic>

namespace orchard::ORCHARD_ISA {
namespace {

using namespace tuning::matmul;

constexpr int64_t row_block = most_block_rows / tile_rows * tile_rows;

// With the loop over rows outside, a's rows stay in the L1 cache while b's panels stream past; with the loop over
// columns outside, the reverse. With packed rows outside, products are up to 12 % faster for 64-byte vectors, and up to
// 7 % slower for shorter ones.
constexpr bool keeps_packed_rows = vector_bytes == 64;

constexpr int64_t divided_up(int64_t value, int64_t by) { return (value + by - 1) / by; }
constexpr int64_t rounded_up(int64_t value, int64_t to) { return divided_up(value, to) * to; }

template <class S> class Multiplication {
  using T = Accumulator<S>;
  static constexpr int64_t width = tile_columns<T>;
  static constexpr int64_t most_columns = column_bytes / int64_t(sizeof(T)) / width * width;
  static constexpr bool is_own_accumulator = std::is_same_v<S, T>;

public:
  explicit Multiplication(const MatrixProduct &product)
      : p_(product), threads_(threads_worth(p_.operations(), threads_at_hand())), has_few_rows_(reads_few_rows()),
        depth_block_(evenly_divided(p_.k, has_few_rows_ ? depth_of_few_rows : most_depth)), is_plain_(is_plain<S>(p_)),
        has_rows_(p_.a.column_stride == 1), packs_a_(!reads_a_in_place()), keeps_rows_(!packs_a_ || keeps_packed_rows),
        columns_in_place_(reads_b_in_place() ? p_.n / width * width : 0),
        kernels_(has_rows_ && !packs_a_ ? tile_kernels<T, Adjacent::row> : tile_kernels<T, Adjacent::step>) {}

  void run() {
    if (p_.epilogue) p_.epilogue->is_taken = true;
    int64_t fitting = packed_bytes / int64_t(sizeof(T)) / std::max<int64_t>(p_.k, 1) / width * width;
    int64_t most = has_few_rows_ ? most_columns * threads_ : std::clamp(fitting, width, most_columns);
    int64_t block = rounded_up(std::min(most, p_.n), width);
    int64_t packed_size = p_.k * std::min(block, rounded_up(p_.n - columns_in_place_, width));
    bool are_shared = packed_size > most_own_panels || p_.m < rows_worth_own_panels * threads_;
    Scratch<T> packed(are_shared ? packed_size : 0);
    for (int64_t start = 0; start < p_.n; start += block) {
      int64_t end = std::min(start + block, p_.n), first_packed = std::clamp(columns_in_place_, start, end);
      if (are_shared) pack_columns(first_packed, end, packed.data());
      multiply_columns(start, end, {are_shared ? packed.data() : nullptr, first_packed}, are_shared ? 0 : packed_size);
    }
  }

private:
  const S *a(int64_t row, int64_t depth) const { return element_of<S>(p_.a, row, depth); }
  const S *b(int64_t depth, int64_t column) const { return element_of<S>(p_.b, depth, column); }

  static int64_t evenly_divided(int64_t count, int64_t most) {
    return divided_up(count, std::max<int64_t>(1, divided_up(count, most)));
  }

  bool reads_few_rows() const {
    return is_own_accumulator && p_.m <= tile_rows && p_.n > width && p_.k * p_.n >= least_numbers_of_few_rows &&
           p_.b.column_stride == 1 && steps_are_far_apart();
  }
  bool steps_are_far_apart() const { return std::abs(p_.b.row_stride) * int64_t(sizeof(S)) > most_bytes_between_steps; }
  bool reads_a_in_place() const {
    bool is_adjacent = has_rows_ || (p_.a.row_stride == 1 && reads_steps_in_place<T>);
    return is_own_accumulator && is_adjacent && p_.n <= most_panels_in_place * width && !evicts_rows();
  }
  bool evicts_rows() const {
    return has_rows_ && !has_few_rows_ && p_.n > width &&
           rows_conflict(p_.a, std::min<int64_t>(p_.m, tile_rows), sizeof(S));
  }
  bool reads_b_in_place() const {
    return has_few_rows_ || (!packs_a_ && p_.b.column_stride == 1 && !steps_are_far_apart());
  }

  // Packs b's columns into panels of `width` columns, each for all of k. Uses all threads, unless called inside a
  // parallel_for.
  void pack_columns(int64_t start, int64_t end, T *packed) const {
    int64_t panels = divided_up(end - start, width);
    int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(p_.k * width, 1));
    parallel_for(panels, grain, [&](int64_t first, int64_t last) {
      for (int64_t column = start + first * width; column < start + last * width; column += width)
        pack_panel<T, width>(b(0, column), p_.b.column_stride, p_.b.row_stride, std::min(width, end - column), p_.k,
                             packed + (column - start) * p_.k);
    });
  }

  // The size of a task: rows of the result, and columns of the block.
  struct Task {
    int64_t rows, columns;
  };

  // Packed rows come in whole tiles; unpacked rows are later divided into tiles of even heights. The number of row
  // tasks is a multiple of the thread count, so that threads finish at the same time. If there are too few rows for
  // that, columns are divided too.
  Task task_of(int64_t columns) const {
    const int64_t tiles = divided_up(p_.m, tile_rows), panels = divided_up(columns, width),
                  most = std::max<int64_t>(1, (packs_a_ ? row_block : row_block / 2) / tile_rows);
    if (has_few_rows_)
      return {tile_rows,
              std::clamp(divided_up(panels, threads_), least_panels_of_few_rows, most_panels_of_few_rows) * width};
    if (threads_ == 1) return {evenly_divided(tiles, most) * tile_rows, panels * width};
    const int64_t heights = std::min(rounded_up(divided_up(tiles, most), threads_), tiles),
                  rows = packs_a_ ? divided_up(tiles, heights) * tile_rows : divided_up(p_.m, heights),
                  shares = divided_up(tasks_of_thread * threads_, divided_up(p_.m, rows));
    return {rows, std::min(std::max(divided_up(panels, shares), least_panels), panels) * width};
  }

  // Packed panels of b's columns from `first` on; null if each thread packs its panels itself.
  struct PackedColumns {
    T *panels;
    int64_t first;
  };

  void multiply_columns(int64_t start, int64_t end, const PackedColumns &shared, int64_t own_size) {
    const Task task_size = task_of(end - start);
    const int64_t rows = task_size.rows, share = task_size.columns; // lambdas can't capture structured bindings
    int64_t row_tasks = divided_up(p_.m, rows), shares = divided_up(end - start, share), tasks = row_tasks * shares;
    int64_t workers = std::min<int64_t>(threads_, tasks);
    int64_t packed_rows_size = packs_a_ ? rounded_up(rows * depth_block_ + lanes<T>, 64) : 0;
    int64_t sums_stride = is_one_block() ? width : share;
    int64_t sums_size = rounded_up(rows * sums_stride, 64),
            scratch_size = packed_rows_size + sums_size + rounded_up(own_size, 64);
    Scratch<T> scratch(workers * scratch_size);
    std::atomic<int64_t> next{0};
    parallel_for(workers, 1, [&](int64_t worker, int64_t) {
      T *packed_rows = scratch.data() + worker * scratch_size, *sums = packed_rows + packed_rows_size;
      PackedColumns packed = shared;
      for (int64_t task; (task = next.fetch_add(1)) < tasks;) {
        if (!packed.panels) packed.panels = sums + sums_size, pack_columns(packed.first, end, packed.panels);
        int64_t row = task / shares * rows, column = start + task % shares * share;
        multiply_block({row, std::min(row + rows, p_.m), column, std::min(column + share, end)}, packed,
                       {packed_rows, sums, sums_stride});
      }
    });
  }

  struct Block {
    int64_t row, end_row, column, end_column;
  };
  // A thread's memory for a block: packed rows of a, and sums that are not computed in the result.
  struct Space {
    T *packed_rows, *sums;
    int64_t sums_stride;
  };
  // The division of rows into tiles: the first `taller` tiles have one row more; the last may have fewer.
  struct Heights {
    int64_t rows, height, taller;

    int64_t start(int64_t tile) const { return std::min(tile * height + std::min(tile, taller), rows); }
  };
  // A block of the result together with a block of k.
  struct Part {
    const Block &block;
    const PackedColumns &packed;
    const Space &space;
    Heights heights;
    int64_t depth, length;
  };

  // With a single block of k, each tile's epilogue runs as soon as the tile is summed, and the next tile reuses the
  // memory.
  bool is_one_block() const { return depth_block_ == p_.k; }

  // Returns even heights if possible: a last tile of a few rows would load b's vectors for few products.
  Heights heights_of(int64_t rows) const {
    int64_t tiles = divided_up(rows, tile_rows);
    return packs_a_ ? Heights{rows, tile_rows, 0} : Heights{rows, rows / tiles, rows % tiles};
  }

  // Runs at least once, so that the epilogue also runs if k is 0.
  void multiply_block(const Block &block, const PackedColumns &packed, const Space &space) {
    Heights heights = heights_of(block.end_row - block.row);
    int64_t depth = 0;
    do {
      Part part{block, packed, space, heights, depth, std::min(depth_block_, p_.k - depth)};
      multiply_part(part);
      depth += part.length;
    } while (depth < p_.k);
    if (p_.epilogue) p_.epilogue->run(p_.epilogue->context, {block.row, block.end_row, block.column, block.end_column});
  }

  void multiply_part(const Part &part) {
    const Block &block = part.block;
    int64_t rows = part.heights.rows, tiles = divided_up(rows, tile_rows), panels = panels_of(block);
    if (packs_a_)
      pack_panels<T, tile_rows>(a(block.row, part.depth), p_.a.row_stride, p_.a.column_stride, rows, part.length,
                                part.space.packed_rows);
    if (keeps_rows_)
      for (int64_t tile = 0; tile < tiles; tile++)
        for (int64_t panel = 0; panel < panels; panel++) multiply_tile_of(part, tile, panel * width);
    else
      for (int64_t panel = 0; panel < panels; panel++)
        for (int64_t tile = 0; tile < tiles; tile++) multiply_tile_of(part, tile, panel * width);
  }

  void multiply_tile_of(const Part &part, int64_t number, int64_t right) {
    int64_t down = part.heights.start(number), height = part.heights.start(number + 1) - down;
    int64_t row = part.block.row + down, column = part.block.column + right,
            columns = std::min(width, part.block.end_column - column);
    bool is_direct = is_plain_ && columns == width;
    Tile<T> tile;
    tile.depth = part.length;
    take_rows(part, row, part.space.packed_rows + number * tile_rows * part.length, tile);
    take_columns(part, column, tile);
    if (is_direct) sum_into_result(part, row, column, tile);
    else sum_into_space(part, is_one_block() ? 0 : down * part.space.sums_stride + right, tile);
    if (has_few_rows_ && panels_of(part.block) < most_panels_of_few_rows) prefetch_next_steps(part, column);
    kernels_.multiply[height - 1](tile);
    if (!is_direct && part.depth + part.length == p_.k) // while the sums are in the L1 cache
      for (int64_t r = 0; r < height; r++) finish_row<S>(p_, row + r, column, columns, tile.c + r * tile.c_stride);
  }

  static int64_t panels_of(const Block &block) { return divided_up(block.end_column - block.column, width); }

  // Prefetches the steps of the next block of k. The hardware prefetcher can't, since it reads only a few numbers per
  // page.
  void prefetch_next_steps(const Part &part, int64_t column) const {
    const int64_t first = part.depth + part.length, end = std::min(first + depth_block_, p_.k);
    for (int64_t step = first; step < end; step++)
      for (int64_t c = 0; c < width; c += line<T>) __builtin_prefetch(b(step, column) + c, 0, 2);
  }

  void take_rows(const Part &part, int64_t row, const T *packed, Tile<T> &tile) const {
    if (packs_a_) tile.a = packed, tile.a_stride = tile_rows;
    else
      tile.a = reinterpret_cast<const T *>(a(row, part.depth)),
      tile.a_stride = has_rows_ ? p_.a.row_stride : p_.a.column_stride;
  }

  void take_columns(const Part &part, int64_t column, Tile<T> &tile) const {
    const PackedColumns &packed = part.packed;
    if (column >= packed.first)
      tile.b = packed.panels + (column - packed.first) * p_.k + part.depth * width, tile.b_stride = width;
    else tile.b = reinterpret_cast<const T *>(b(part.depth, column)), tile.b_stride = p_.b.row_stride;
  }

  void sum_into_result(const Part &part, int64_t row, int64_t column, Tile<T> &tile) const {
    auto element = [&](const Matrix &matrix) { return const_cast<T *>(element_of<T>(matrix, row, column)); };
    tile.c = element(p_.out), tile.c_stride = p_.out.row_stride;
    if (part.depth > 0) tile.input = tile.c, tile.input_stride = tile.c_stride;
    else tile.input = p_.has_input() ? element(p_.input) : nullptr, tile.input_stride = p_.input.row_stride;
  }

  void sum_into_space(const Part &part, int64_t offset, Tile<T> &tile) const {
    tile.c = part.space.sums + offset, tile.c_stride = part.space.sums_stride;
    tile.input = part.depth > 0 ? tile.c : nullptr, tile.input_stride = tile.c_stride;
  }

  const MatrixProduct &p_;
  const int64_t threads_;
  const bool has_few_rows_;
  const int64_t depth_block_;
  const bool is_plain_, has_rows_, packs_a_, keeps_rows_;
  const int64_t columns_in_place_; // of b
  const TileKernels<T> &kernels_;
};

template <class S> void multiply_whole(const MatrixProduct &product) {
  if constexpr (!std::is_integral_v<S>)
    if (product.m <= tile_rows && is_for_dots(product)) return multiply_dots<S>(product);
  if constexpr (std::is_floating_point_v<S>)
    if (is_for_few_dots<S>(product)) return multiply_dots<S>(product);
  if constexpr (!std::is_integral_v<S>)
    if (multiply_if_outer<S>(product) || multiply_if_small<S>(product)) return;
  Multiplication<S>(product).run();
}

template <class S> void multiply(const MatrixProduct &product) {
  if constexpr (std::is_floating_point_v<S>)
    if (const int64_t parts = parts_of<S>(product); parts > 1)
      return multiply_parts<S>(product, parts, multiply_whole<S>);
  multiply_whole<S>(product);
}

} // namespace

extern const MatmulKernels matmul_kernels = {{multiply<double>, multiply<float>, multiply<Float16>, multiply<BFloat16>,
                                              multiply<int64_t>, multiply<int32_t>, multiply<uint32_t>,
                                              multiply<int8_t>, multiply<uint8_t>, nullptr}};

} // namespace orchard::ORCHARD_ISA
