// A blocked matrix product after Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008).
//
//   for each block of columns (of b and the result), as many as fit a cache:
//     pack b's columns for all of k                                             [threads share the panels]
//     for each block of rows (of a and the result), in parallel:
//       for each block of k: pack a's rows; sum tiles of the result, which stay in a thread's own cache
//       finish: alpha * sum + beta * input, rounded once to the dtype, written to its place
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
constexpr int64_t row_block = (120 / tile_rows) * tile_rows;
constexpr int64_t column_bytes = 4096;          // of a row of the block of the result
constexpr int64_t packed_bytes = int64_t(64) << 20; // of b's panels, where k allows

constexpr int64_t divided_up(int64_t value, int64_t by) { return (value + by - 1) / by; }
constexpr int64_t rounded_up(int64_t value, int64_t to) { return divided_up(value, to) * to; }

template <class S> class Multiplication {
  using T = Accumulator<S>;
  static constexpr int64_t width = tile_columns<T>;
  static constexpr int64_t most_columns = column_bytes / int64_t(sizeof(T)) / width * width;

public:
  explicit Multiplication(const MatrixProduct &product) : p_(product) {}

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
    int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(p_.k * width, 1));
    parallel_for(panels, grain, [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; panel++)
        pack_panel<T, width>(b(0, start + panel * width), p_.b.column_stride, p_.b.row_stride,
                             std::min(width, columns - panel * width), p_.k, packed + panel * width * p_.k);
    });
  }

  // Few rows are not enough work for every thread: then the columns are divided too.
  int64_t columns_per_task(int64_t columns) const {
    int64_t row_tasks = divided_up(p_.m, row_block);
    int64_t parts = divided_up(2 * thread_count(), row_tasks);
    return std::min(std::max(rounded_up(divided_up(columns, parts), width), 2 * width), rounded_up(columns, width));
  }

  void multiply_columns(int64_t start, int64_t columns, const T *packed) {
    int64_t share = columns_per_task(columns);
    int64_t shares = divided_up(columns, share);
    int64_t tasks = divided_up(p_.m, row_block) * shares;
    int64_t workers = std::min<int64_t>(p_.operations() < 1e6 ? 1 : thread_count(), tasks);
    int64_t rows_size = row_block * std::min(depth_block, p_.k);
    int64_t scratch_size = rounded_up(rows_size, 64) + row_block * share;
    Scratch<T> scratch(static_cast<size_t>(workers * scratch_size));
    std::atomic<int64_t> next{0};
    parallel_for(workers, 1, [&](int64_t worker, int64_t) {
      T *rows = scratch.data() + worker * scratch_size;
      T *sums = rows + rounded_up(rows_size, 64);
      for (int64_t task; (task = next.fetch_add(1)) < tasks;) {
        int64_t row = task / shares * row_block, column = task % shares * share;
        multiply_block(row, std::min(row_block, p_.m - row), start + column, std::min(share, columns - column), share,
                       packed + column * p_.k, rows, sums);
      }
    });
  }

  void multiply_block(int64_t row, int64_t rows, int64_t column, int64_t columns, int64_t stride, const T *packed, T *packed_rows,
                      T *sums) {
    for (int64_t depth = 0; depth < p_.k; depth += depth_block) {
      int64_t length = std::min(depth_block, p_.k - depth);
      for (int64_t r = 0; r < rows; r += tile_rows)
        pack_panel<T, tile_rows>(a(row + r, depth), p_.a.row_stride, p_.a.column_stride, std::min<int64_t>(tile_rows, rows - r),
                                 length, packed_rows + r * length);
      for (int64_t c = 0; c < columns; c += width)
        for (int64_t r = 0; r < rows; r += tile_rows) {
          auto multiply = depth == 0 ? multiply_tile<T, false> : multiply_tile<T, true>;
          multiply(length, packed_rows + r * length, packed + c * p_.k + depth * width, sums + r * stride + c, stride);
        }
    }
    for (int64_t r = 0; r < rows; r++) finish_row<S>(p_, row + r, column, columns, sums + r * stride);
  }

  const MatrixProduct &p_;
};

template <class S> void multiply(const MatrixProduct &product) { Multiplication<S>(product).run(); }

} // namespace

extern const MatmulKernels matmul_kernels = {
    {multiply<double>, multiply<float>, multiply<Float16>, multiply<BFloat16>, multiply<int64_t>, multiply<int32_t>,
     multiply<uint32_t>, multiply<int8_t>, multiply<uint8_t>, nullptr}};

} // namespace orchard::ORCHARD_ISA
