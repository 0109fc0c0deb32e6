// The micro-kernel of matrix products: a small tile of the result, which stays in registers while it is summed over k.
//
//   for p < depth: for r < rows: for c < columns: tile[r][c] += a[r][p] * b[p][c]
//
// A step loads `columns` numbers of b as whole vectors, and multiplies each by all `rows` numbers of a. The tile is as
// large as registers allow: rows * vectors sums, the vectors of b, and one for the factor. There is code for each
// smaller height, so that the last rows take no longer than necessary.
#pragma once

#include "product.h"
#include "simd.h"
#include "tuning.h"

#include <utility>

namespace orchard::ORCHARD_ISA {

#if defined(__AVX512F__)
constexpr int tile_rows = 14, tile_vectors = 2; // of 32 registers
#elif defined(__aarch64__)
constexpr int tile_rows = 8, tile_vectors = 3; // of 32 registers
#else
constexpr int tile_rows = 6, tile_vectors = 2; // of 16 registers
#endif

template <class T> constexpr int tile_columns = tile_vectors * vector_bytes / int(sizeof(T));

// The adjacent numbers of a: the numbers of a row, or of a step (a column).
enum class Adjacent { row, step };

// Returns whether rows that a tile reads in parallel evict each other from the L1 cache.
inline bool rows_conflict(const Matrix &matrix, int64_t rows, int64_t element_bytes) {
  return rows > tuning::matmul::ways_of_cache && matrix.row_stride * element_bytes % tuning::matmul::way_bytes == 0;
}

template <class T> struct Tile {
  int64_t depth;
  const T *a;
  int64_t a_stride; // between rows, or between steps
  const T *b;       // the numbers of a step are adjacent
  int64_t b_stride; // between steps
  T *c;             // receives the sums
  int64_t c_stride;
  const T *input; // the sums are added to it; null, or possibly c
  int64_t input_stride;
};

constexpr int line_bytes = 64;
template <class T> constexpr int line = line_bytes / int(sizeof(T));
// The number of steps to prefetch ahead: about 220 cycles, the latency of the L3 cache, at two vector products per
// cycle.
constexpr int64_t steps_ahead = 448 / (tile_rows * tile_vectors);

// Prefetches the cache lines of one step of b, or of one row of c. Always inlined: GCC assumes that a function that
// only prefetches has no effects, and drops its calls.
template <class T> [[gnu::always_inline]] inline void prefetch_row(const T *row) {
#pragma GCC unroll 4
  for (int c = 0; c < tile_columns<T>; c += line<T>) __builtin_prefetch(row + c);
}

// Prefetches the result, a row at each step, while the sums are computed.
template <class T> class ResultPrefetch {
public:
  ResultPrefetch(const Tile<T> &tile, int rows)
      : row_(tile.c), last_(tile.c + (rows - 1) * tile.c_stride), stride_(tile.c_stride) {}
  [[gnu::always_inline]] void step() {
    prefetch_row(row_);
    row_ = row_ == last_ ? row_ : row_ + stride_;
  }

private:
  const T *row_, *last_;
  int64_t stride_;
};

template <class T, int rows> using Sums = Vector<T>[rows][tile_vectors];

// factor(r) returns a's number in row r. Always inlined, like the parts of a kernel below: in a separate function, the
// sums would be in memory.
template <class T, int rows, class Factor>
[[gnu::always_inline]] inline void add_step(const T *b, Sums<T, rows> &sums, Factor factor) {
  Vector<T> columns[tile_vectors];
#pragma GCC unroll 4
  for (int v = 0; v < tile_vectors; v++) columns[v] = load_vector(b + v * lanes<T>);
#pragma GCC unroll 16
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < tile_vectors; v++) sums[r][v] = multiply_add<T>(columns[v], factor(r), sums[r][v]);
}

template <class T, int rows, bool has_input>
[[gnu::always_inline]] inline void store_sums(const Tile<T> &tile, const Sums<T, rows> &sums) {
  const T *input = tile.input;
  T *c = tile.c;
  const int64_t stride = tile.c_stride, input_stride = tile.input_stride;
#pragma GCC unroll 16
  for (int r = 0; r < rows; r++, c += stride, input += has_input ? input_stride : 0)
#pragma GCC unroll 4
    for (int v = 0; v < tile_vectors; v++)
      store_vector<T>(has_input ? sums[r][v] + load_vector(input + v * lanes<T>) : sums[r][v], c + v * lanes<T>);
}

// For a with adjacent rows: each row is a separate stream. During as many steps as a cache line has numbers, each step
// prefetches two lines of a row: first lines of the result, then lines of the next tile's rows. (One address serves for
// both, so that every variable of the loop stays in its register.)
template <class T, int rows> [[gnu::always_inline]] inline void sum_rows(const Tile<T> &tile, Sums<T, rows> &sums) {
  constexpr int group = 3; // one address and a stride address three rows
  const T *a[(rows + group - 1) / group], *b = tile.b;
  const int64_t stride = tile.a_stride, b_stride = tile.b_stride;
#pragma GCC unroll 8
  for (int r = 0; r < rows; r += group) a[r / group] = tile.a + r * stride;
  for (int64_t start = 0; start < tile.depth; start += line<T>) {
    const T *fetched = start == 0 ? tile.c : tile.a + rows * stride + start - line<T>;
    const int64_t fetched_stride = start == 0 ? tile.c_stride : stride;
    const int64_t end = start + line<T> < tile.depth ? start + line<T> : tile.depth;
    for (int64_t p = start; p < end; p++, b += b_stride, fetched += fetched_stride) {
      __builtin_prefetch(fetched);
      __builtin_prefetch(fetched + line<T>);
      add_step<T, rows>(b, sums, [&](int r) { return a[r / group][p + r % group * stride]; });
    }
  }
}

// Whether a's steps are read in place. A cache line of a step has the numbers of several tiles, so narrow tiles would
// read each line several times.
template <class T> constexpr bool reads_steps_in_place = 2 * tile_rows > line<T>;

// For a with adjacent steps: its cache lines are far apart, so the hardware prefetcher can't predict them. Those of the
// next tile are prefetched into the L2 cache.
template <class T, int rows> [[gnu::always_inline]] inline void sum_steps(const Tile<T> &tile, Sums<T, rows> &sums) {
  const T *a = tile.a, *b = tile.b;
  const int64_t stride = tile.a_stride, b_stride = tile.b_stride;
  ResultPrefetch<T> result(tile, rows);
  for (int64_t p = 0; p < tile.depth; p++, a += stride, b += b_stride) {
    result.step();
    if (reads_steps_in_place<T>) {
      __builtin_prefetch(a + steps_ahead * stride + rows - 1);
      __builtin_prefetch(a + 2 * rows - 1, 0, 2);
      prefetch_row(b + steps_ahead * b_stride);
    }
    add_step<T, rows>(b, sums, [&](int r) { return a[r]; });
  }
}

template <class T, int rows, Adjacent adjacent> void multiply_tile(const Tile<T> &tile) {
  Sums<T, rows> sums = {};
  if constexpr (adjacent == Adjacent::row) sum_rows<T, rows>(tile, sums);
  else sum_steps<T, rows>(tile, sums);
  if (tile.input) store_sums<T, rows, true>(tile, sums);
  else store_sums<T, rows, false>(tile, sums);
}

// Indexed by height minus 1.
template <class T> struct TileKernels {
  void (*multiply[tile_rows])(const Tile<T> &tile);
};
template <class T, Adjacent adjacent, int... row>
constexpr TileKernels<T> tile_kernels_of(std::integer_sequence<int, row...>) {
  return {{multiply_tile<T, row + 1, adjacent>...}};
}
template <class T, Adjacent adjacent>
constexpr TileKernels<T> tile_kernels = tile_kernels_of<T, adjacent>(std::make_integer_sequence<int, tile_rows>());

} // namespace orchard::ORCHARD_ISA
