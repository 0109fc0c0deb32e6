// Products with few or short sums, and narrow products. They read b in place where possible. Operands of float16 and
// bfloat16 are first converted to float32; others take no memory.
//
//   for each panel of columns, in parallel if there is enough work:
//     pack b's columns to the stack, unless they are read in place
//     for each tile of rows: sum the tile over all of k; finish it
//
// Panels are as wide as the registers allow for the tile's height; the last vector of the last panel may have fewer
// columns and is loaded with a mask, so neither operand is padded. Each sum is computed in one pass, in the order of k,
// so results do not depend on the number of threads.
#pragma once

#include "../parallel.h"
#include "finish.h"
#include "grid.h"
#include "small_scratch.h"
#include "some_lanes.h"
#include "tile.h"
#include "tuning.h"

#include <algorithm>
#include <array>

namespace orchard::ORCHARD_ISA {

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int small_registers = 32;
#else
constexpr int small_registers = 16;
#endif

// The maximum number of vectors of columns in a tile of this height. The sums, one vector of b per column vector, and
// the broadcast element of a must fit into the registers. Tiles of few rows need several column vectors: eight
// multiply-adds can start before the first one ends.
constexpr int most_small_vectors = 4;
constexpr int small_vectors(int rows) {
  const int fitting = (small_registers - 2) / (rows + 1);
  return fitting < 1 ? 1 : fitting > most_small_vectors ? most_small_vectors : fitting;
}

template <class T> struct SmallTile {
  int64_t depth;
  const T *a;
  int64_t a_row, a_step; // strides of a
  const T *b;            // the numbers of a step are adjacent
  int64_t b_step;
  T *c;
  int64_t c_stride;
  const T *input; // the sums are added to it; null, or possibly c
  int64_t input_stride;
  SomeLanes<T> last; // lanes of the last vector
};

template <class T, int rows, int vectors> void multiply_small_tile(const SmallTile<T> &tile) {
  constexpr int group = 3; // one address and a stride address three rows
  constexpr int groups = (rows + group - 1) / group;
  const T *a[groups], *b = tile.b;
  const int64_t row = tile.a_row, step = tile.a_step, b_step = tile.b_step;
  const SomeLanes<T> last = tile.last;
#pragma GCC unroll 8
  for (int g = 0; g < groups; g++) a[g] = tile.a + g * group * row;
  Vector<T> sums[rows][vectors] = {};
  for (int64_t p = 0; p < tile.depth; p++, b += b_step) {
    Vector<T> columns[vectors];
#pragma GCC unroll 4
    for (int v = 0; v + 1 < vectors; v++) columns[v] = load_vector(b + v * lanes<T>);
    columns[vectors - 1] = last.load(b + (vectors - 1) * lanes<T>);
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
      const T factor = a[r / group][r % group * row];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) sums[r][v] = multiply_add<T>(columns[v], factor, sums[r][v]);
    }
#pragma GCC unroll 8
    for (int g = 0; g < groups; g++) a[g] += step;
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; r++) {
    T *c = tile.c + r * tile.c_stride;
    const T *input = tile.input ? tile.input + r * tile.input_stride : nullptr;
#pragma GCC unroll 4
    for (int v = 0; v + 1 < vectors; v++)
      store_vector<T>(input ? sums[r][v] + load_vector(input + v * lanes<T>) : sums[r][v], c + v * lanes<T>);
    constexpr int end = (vectors - 1) * lanes<T>;
    last.store(input ? sums[r][vectors - 1] + last.load(input + end) : sums[r][vectors - 1], c + end);
  }
}

template <class T> using SmallKernel = void (*)(const SmallTile<T> &tile);
template <class T> using SmallKernelsOfHeight = std::array<SmallKernel<T>, most_small_vectors>;

template <class T, int rows, int... vector>
constexpr SmallKernelsOfHeight<T> small_kernels_of_height(std::integer_sequence<int, vector...>) {
  return {multiply_small_tile<T, rows, (vector < small_vectors(rows) ? vector + 1 : 1)>...};
}
template <class T, int... row>
constexpr std::array<SmallKernelsOfHeight<T>, sizeof...(row)> small_kernels_of(std::integer_sequence<int, row...>) {
  return {small_kernels_of_height<T, row + 1>(std::make_integer_sequence<int, most_small_vectors>())...};
}
// Indexed by height minus 1, then by vectors minus 1.
template <class T> constexpr auto small_kernels = small_kernels_of<T>(std::make_integer_sequence<int, tile_rows>());

// S is the dtype of the result and the input. a and b have the accumulator's type.
template <class S> class SmallProduct {
  using T = Accumulator<S>;

public:
  explicit SmallProduct(const MatrixProduct &product)
      : p_(product), reads_b_in_place_(is_read_in_place(p_)), is_plain_(is_plain<S>(p_)),
        tiles_(divided_up(p_.m, most_height())), height_(p_.m / tiles_), taller_(p_.m % tiles_),
        vectors_(std::min<int64_t>(most_vectors(), divided_up(p_.n, lanes<T>))), width_(vectors_ * lanes<T>) {}

  static bool supports(const MatrixProduct &p) {
    if (p.k == 0 || p.out.column_stride != 1) return false;
    const bool is_narrow = p.n <= most_narrow && std::is_same_v<S, T>; // otherwise a is copied, by one thread
    if (p.operations() > tuning::matmul::most_small_operations && !is_narrow) return false;
    return is_read_in_place(p) || p.k <= most_packed_depth;
  }

  void run() const {
    const int64_t panels = divided_up(p_.n, width_), threads = threads_worth(p_.operations(), threads_at_hand());
    if (threads == 1) return multiply_part(0, panels, 0, tiles_);
    const auto [height, share] = best_task({tiles_, panels, tiles_}, threads);
    const int64_t rows = height, columns = share, shares = divided_up(panels, columns),
                  tasks = divided_up(tiles_, rows) * shares;
    parallel_for(tasks, 1, [&](int64_t task, int64_t) {
      const int64_t panel = task % shares * columns, tile = task / shares * rows;
      multiply_part(panel, std::min(panel + columns, panels), tile, std::min(tile + rows, tiles_));
    });
  }

private:
  static constexpr int64_t most_packed_depth =
      tuning::matmul::small_panel_bytes / (tuning::matmul::packed_vectors * vector_bytes);
  static constexpr int64_t most_narrow = tile_columns<T>;

  static constexpr int64_t divided_up(int64_t value, int64_t by) { return (value + by - 1) / by; }

  // Returns whether b can be read in place: its columns must be adjacent, and its rows must stay in the L1 cache or be
  // read only a few times.
  static bool is_read_in_place(const MatrixProduct &p) {
    if (p.b.column_stride != 1) return false;
    if (p.m <= tuning::matmul::most_tiles_of_far_steps * tile_rows) return true;
    const int64_t bytes = std::min<int64_t>(p.n, tile_columns<T>) * int64_t(sizeof(T));
    return std::abs(p.b.row_stride) * int64_t(sizeof(T)) <= tuning::matmul::most_bytes_between_steps &&
           p.k * bytes <= tuning::matmul::small_panel_bytes;
  }

  int64_t most_height() const {
    return rows_conflict(p_.a, tile_rows, sizeof(T)) ? std::min<int64_t>(tile_rows, tuning::matmul::ways_of_cache)
                                                     : tile_rows;
  }
  int64_t most_vectors() const {
    const int64_t fitting = small_vectors(int(height_ + (taller_ > 0)));
    return reads_b_in_place_ ? fitting : std::min(fitting, tuning::matmul::packed_vectors);
  }
  int64_t row_of(int64_t tile) const { return tile * height_ + std::min(tile, taller_); }

  void multiply_part(int64_t panel, int64_t end_panel, int64_t tile, int64_t end_tile) const {
    if (!reads_b_in_place_) return multiply_packed(panel, end_panel, tile, end_tile);
    for (; panel < end_panel; panel++)
      multiply_panel(panel * width_, tile, end_tile, element_of<T>(p_.b, 0, panel * width_), p_.b.row_stride);
  }

  void multiply_packed(int64_t panel, int64_t end_panel, int64_t tile, int64_t end_tile) const {
    alignas(line_bytes) T packed[tuning::matmul::small_panel_bytes / sizeof(T)];
    for (; panel < end_panel; panel++) {
      pack(panel * width_, packed);
      multiply_panel(panel * width_, tile, end_tile, packed, width_);
    }
  }

  // packed[p * width + c] = b[p][column + c]. Lanes past the last column are not set.
  void pack(int64_t column, T *packed) const {
    const int64_t columns = std::min(width_, p_.n - column), step = p_.b.row_stride, across = p_.b.column_stride;
    const T *b = element_of<T>(p_.b, 0, column);
    int64_t p = 0;
    if (step == 1)
      for (; p + lanes<T> <= p_.k; p += lanes<T>)
        for (int64_t c = 0; c < columns; c += lanes<T>) {
          const T *from = b + c * across + p;
          if (c + lanes<T> <= columns) transpose_square(from, across, packed + p * width_ + c, width_);
          else transpose_part_of_square(from, across, columns - c, packed + p * width_ + c, width_);
        }
    if (step == 1 && columns == width_) p += pack_quarters(b + p, p_.k - p, packed + p * width_);
    for (; p < p_.k; p++) load_row<T>(b + p * step, across, packed + p * width_, columns);
  }

  // Packs fewer steps than a vector has lanes, 16 bytes of each column at a time. Returns the number of packed steps.
  int64_t pack_quarters(const T *b, int64_t depth, T *packed) const {
    constexpr int64_t part = 16 / int64_t(sizeof(T));
    const int64_t steps = depth / part * part, across = p_.b.column_stride;
    for (int64_t c = 0; c < width_ && steps > 0; c += lanes<T>)
      transpose_rows<T>([&](int64_t r) { return b + (c + r) * across; }, packed + c, width_, steps);
    return steps;
  }

  void multiply_panel(int64_t column, int64_t first, int64_t end, const T *b, int64_t b_step) const {
    const int64_t columns = std::min(width_, p_.n - column), vectors = divided_up(columns, lanes<T>);
    alignas(line_bytes) T sums[tile_rows * most_small_vectors * lanes<T>];
    auto element = [&](const Matrix &matrix, int64_t row) { // of a plain product
      return const_cast<T *>(element_of<T>(matrix, row, column));
    };
    SmallTile<T> tile{p_.k,
                      nullptr,
                      p_.a.row_stride,
                      p_.a.column_stride,
                      b,
                      b_step,
                      sums,
                      width_,
                      nullptr,
                      0,
                      SomeLanes<T>(columns - (vectors - 1) * lanes<T>)};
    if (is_plain_) tile.c_stride = p_.out.row_stride, tile.input_stride = p_.input.row_stride;
    for (int64_t number = first; number < end; number++) {
      const int64_t row = row_of(number), height = row_of(number + 1) - row;
      tile.a = element_of<T>(p_.a, row, 0);
      if (is_plain_) {
        tile.c = element(p_.out, row);
        if (p_.has_input()) tile.input = element(p_.input, row);
      }
      small_kernels<T>[height - 1][vectors - 1](tile);
      if (!is_plain_)
        for (int64_t r = 0; r < height; r++) finish_row<S>(p_, row + r, column, columns, sums + r * width_);
    }
  }

  const MatrixProduct &p_;
  const bool reads_b_in_place_, is_plain_;
  const int64_t tiles_, height_, taller_; // the first `taller_` tiles have one row more
  const int64_t vectors_, width_;
};

// Returns a copy of a matrix in the accumulator's type. Adjacent elements stay adjacent.
template <class S> inline Matrix widened(const Matrix &matrix, int64_t rows, int64_t columns, Accumulator<S> *to) {
  if (matrix.column_stride != 1 && matrix.row_stride == 1)
    return widened<S>(matrix.transposed(), columns, rows, to).transposed();
  const bool is_dense = matrix.column_stride == 1 && matrix.row_stride == columns;
  const int64_t lines = is_dense ? 1 : rows, length = is_dense ? rows * columns : columns;
  for (int64_t i = 0; i < lines; i++)
    load_row<Accumulator<S>>(element_of<S>(matrix, i, 0), matrix.column_stride, to + i * length, length);
  return {reinterpret_cast<char *>(to), columns, 1};
}

template <class S> void multiply_small(MatrixProduct product) {
  using T = Accumulator<S>;
  if constexpr (std::is_same_v<S, T>) return SmallProduct<S>(product).run();
  const int64_t left = product.m * product.k, right = product.k * product.n;
  SmallScratch<T> scratch(left + right);
  product.a = widened<S>(product.a, product.m, product.k, scratch.data());
  product.b = widened<S>(product.b, product.k, product.n, scratch.data() + left);
  SmallProduct<S>(product).run();
}

// Computes the product, or its transposed form, if it is small. Returns whether it was.
template <class S> bool multiply_if_small(const MatrixProduct &product) {
  const bool is_turned = product.out.column_stride != 1 && product.out.row_stride == 1;
  const MatrixProduct &shown = is_turned ? product.transposed() : product;
  if (!SmallProduct<S>::supports(shown)) return false;
  multiply_small<S>(shown);
  return true;
}

} // namespace orchard::ORCHARD_ISA
