// A blocked matrix product after Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008).
//
//   for each block of columns (of b and the result), as many as fit a cache:
//     pack b's columns for all of k                                             [threads share the panels]
//     for each block of rows (of a and the result), in parallel:
//       for each block of k: pack a's rows; sum tiles of the result, which stay in a thread's own cache
//       after the last one, finish each tile at once: alpha * sum + beta * input, rounded once to the dtype, written to its place
//
// k is cut at multiples of `depth_block` and the rest at tiles, so a number of the result is the same sum in the same order for any
// number of threads.
#include "kernel.h"

#include "../memory.h"
#include "../parallel.h"
#include "finish.h"
#include "pack.h"
#include "tile.h"

#include <algorithm>
#include <atomic>

namespace orchard::ORCHARD_ISA {
namespace {

constexpr int64_t depth_block = 256;
constexpr int64_t row_block = (120 / tile_rows) * tile_rows; // at most
constexpr int64_t column_bytes = 4096;          // of a row of the block of the result
constexpr int64_t packed_bytes = int64_t(64) << 20; // of b's panels, where k allows

constexpr int64_t divided_up(int64_t value, int64_t by) { return (value + by - 1) / by; }
constexpr int64_t rounded_up(int64_t value, int64_t to) { return divided_up(value, to) * to; }

template <class S> class Multiplication {
  using T = Accumulator<S>;
  static constexpr int64_t width = tile_columns<T>;
  static constexpr int64_t most_columns = column_bytes / int64_t(sizeof(T)) / width * width;

public:
  explicit Multiplication(const MatrixProduct &product) : p_(product), is_plain_(is_plain<S>(product)) {}

  void run() {
    int64_t fitting = packed_bytes / int64_t(sizeof(T)) / std::max<int64_t>(p_.k, 1) / width * width;
    int64_t block = std::min(std::clamp(fitting, width, most_columns), rounded_up(p_.n, width));
    Scratch<T> packed(static_cast<size_t>(p_.k * block));
    for (int64_t start = 0; start < p_.n; start += block) {
      int64_t columns = std::min(block, p_.n - start);
      pack_columns(start, columns, packed.data());
      multiply_columns(start, columns, packed.data());
    }
  }

private:
  const S *a(int64_t row, int64_t depth) const {
    return reinterpret_cast<const S *>(p_.a.data) + row * p_.a.row_stride + depth * p_.a.column_stride;
  }
  const S *b(int64_t depth, int64_t column) const {
    return reinterpret_cast<const S *>(p_.b.data) + depth * p_.b.row_stride + column * p_.b.column_stride;
  }

  // Panels of `width` columns, each for all of k.
  void pack_columns(int64_t start, int64_t columns, T *packed) {
    int64_t panels = divided_up(columns, width);
    int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(p_.k * width, 1));
    parallel_for(panels, grain, [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; panel++)
        pack_panel<T, width>(b(0, start + panel * width), p_.b.column_stride, p_.b.row_stride,
                             std::min(width, columns - panel * width), p_.k, packed + panel * width * p_.k);
    });
  }

  // A multiple of the threads, so that all end together, unless the rows are few.
  int64_t rows_per_task() const {
    int64_t tiles = divided_up(p_.m, tile_rows), tasks = divided_up(tiles * tile_rows, row_block);
    return divided_up(tiles, std::min(rounded_up(tasks, thread_count()), tiles)) * tile_rows;
  }

  // Few rows are not enough work for every thread: then the columns are divided too.
  int64_t columns_per_task(int64_t columns, int64_t row_tasks) const {
    int64_t parts = divided_up(2 * thread_count(), row_tasks);
    return std::min(std::max(rounded_up(divided_up(columns, parts), width), 2 * width), rounded_up(columns, width));
  }

  void multiply_columns(int64_t start, int64_t columns, const T *packed) {
    int64_t rows = rows_per_task(), row_tasks = divided_up(p_.m, rows);
    int64_t share = columns_per_task(columns, row_tasks), shares = divided_up(columns, share);
    int64_t tasks = row_tasks * shares;
    int64_t workers = std::min<int64_t>(p_.operations() < 1e6 ? 1 : thread_count(), tasks);
    int64_t rows_size = rounded_up(rows * std::min(depth_block, p_.k) + lanes<T>, 64);
    int64_t scratch_size = rows_size + (is_one_block() ? tile_rows * width : rows * share);
    Scratch<T> scratch(static_cast<size_t>(workers * scratch_size));
    std::atomic<int64_t> next{0};
    parallel_for(workers, 1, [&](int64_t worker, int64_t) {
      T *packed_rows = scratch.data() + worker * scratch_size;
      for (int64_t task; (task = next.fetch_add(1)) < tasks;) {
        int64_t row = task / shares * rows, column = task % shares * share;
        multiply_block({row, std::min(rows, p_.m - row), start + column, std::min(share, columns - column)}, share,
                       packed + column * p_.k, packed_rows, packed_rows + rows_size);
      }
    });
  }

  struct Block {
    int64_t row, rows, column, columns;
  };

  // Then a tile's sums are over when it is done, and lie in the place of the last one's.
  bool is_one_block() const { return p_.k <= depth_block; }

  void multiply_block(const Block &block, int64_t share, const T *packed, T *packed_rows, T *sums) {
    int64_t depth = 0;
    do {
      int64_t length = std::min(depth_block, p_.k - depth);
      bool is_last = depth + length == p_.k;
      pack_panels<T, tile_rows>(a(block.row, depth), p_.a.row_stride, p_.a.column_stride, block.rows, length, packed_rows);
      auto multiply = depth == 0 ? multiply_tile<T, false> : multiply_tile<T, true>;
      for (int64_t c = 0; c < block.columns; c += width)
        for (int64_t r = 0; r < block.rows; r += tile_rows) {
          T *tile = is_one_block() ? sums : sums + r * share + c;
          int64_t stride = is_one_block() ? width : share;
          multiply(length, packed_rows + r * length, packed + c * p_.k + depth * width, tile, stride);
          if (is_last) finish_tile(block, r, c, tile, stride);
        }
      depth += length;
    } while (depth < p_.k);
  }

  // While the sums are in the first-level cache.
  void finish_tile(const Block &block, int64_t r, int64_t c, T *tile, int64_t stride) {
    int64_t rows = std::min<int64_t>(tile_rows, block.rows - r), columns = std::min<int64_t>(width, block.columns - c);
    if constexpr (std::is_same_v<S, T>)
      if (is_plain_ && columns == width) {
        for (int64_t i = 0; i < rows; i++) finish_plain_row<S, width>(p_, block.row + r + i, block.column + c, tile + i * stride);
        return;
      }
    for (int64_t i = 0; i < rows; i++) finish_row<S>(p_, block.row + r + i, block.column + c, columns, tile + i * stride);
  }

  const MatrixProduct &p_;
  const bool is_plain_;
};

template <class S> void multiply(const MatrixProduct &product) { Multiplication<S>(product).run(); }

} // namespace

extern const MatmulKernels matmul_kernels = {
    {multiply<double>, multiply<float>, multiply<Float16>, multiply<BFloat16>, multiply<int64_t>, multiply<int32_t>,
     multiply<uint32_t>, multiply<int8_t>, multiply<uint8_t>, nullptr}};

} // namespace orchard::ORCHARD_ISA
