// Products of tiles, kept in registers while their sums run, as in ../matmul/tile.h.
//
// Scores are stored transposed, s[key][query]: a vector holds one key's scores of adjacent queries. Maxima and sums of
// a query's scores are then computed lane by lane, without shuffles. The other operand, and the scores when they
// multiply rows, are read as single numbers.
#pragma once

#include "../matmul/simd.h"
#include "attention.h"

#include <numeric>

namespace orchard::ORCHARD_ISA {

// Rows of a tile, the most vectors in a row of scores, and the vectors in a row of sums, chosen by the number of
// registers.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int panel_rows = 8, panel_vectors = 3, row_vectors = 2; // of 32
#else
constexpr int panel_rows = 4, panel_vectors = 3, row_vectors = 2; // of 16
#endif

// A wider panel reads keys less often, but has more unused lanes, beyond the last query and beyond the band. `most` is
// the number of queries, in vectors, up to which panels of `vectors` vectors are fastest, as measured with causal
// heads.
struct PanelSize {
  int64_t most;
  int vectors;
};
constexpr PanelSize panel_sizes[] = {{1, 1}, {16, 2}, {0, panel_vectors}};

// Calls use(vectors), a constant, for panels of a sequence with `queries` queries.
template <class T, size_t at = 0, class Use> inline void with_panel_vectors(int64_t queries, Use use) {
  if constexpr (at + 1 < std::size(panel_sizes))
    if (queries > panel_sizes[at].most * lanes<T>) return with_panel_vectors<T, at + 1>(queries, use);
  use(std::integral_constant<int, panel_sizes[at].vectors>());
}

// c[r][l] = factor · Σ a[r][p] · b[p][l] over p < depth, for r < panel_rows and l < vectors · lanes. Rows of a are
// `stride` apart; rows of b and c have that many lanes.
template <int vectors, class T>
inline void multiply_panel(int64_t depth, const T *a, int64_t stride, const T *b, T factor, T *c) {
  constexpr int width = vectors * lanes<T>;
  Vector<T> sums[panel_rows][vectors] = {};
  for (int64_t p = 0; p < depth; p++, b += width) {
    Vector<T> columns[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) columns[v] = load_vector(b + v * lanes<T>);
#pragma GCC unroll 8
    for (int r = 0; r < panel_rows; r++)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) sums[r][v] = multiply_add<T>(columns[v], a[r * stride + p], sums[r][v]);
  }
#pragma GCC unroll 8
  for (int r = 0; r < panel_rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) store_vector<T>(sums[r][v] * factor, c + r * width + v * lanes<T>);
}

// Strides of the factor by which row p is multiplied in sum r: a[p · row + r · sum].
template <int row_step, int sum_step> struct Factors {
  static constexpr int row = row_step, sum = sum_step;
};
template <int width> using OfKeys = Factors<width, 1>;    // of s[key][query]: rows are for keys, sums for queries
template <int width> using OfQueries = Factors<1, width>; // rows are for queries, sums for keys

// sums[r][l] = decay[r] · sums[r][l] + Σ a(p, r) · rows[p][l] over p < depth, for r < count and l < vectors · lanes.
// Rows and sums are `stride` apart; decay may be null: 1.
template <class Where, int count, int vectors, class T>
inline void add_rows_tile(int64_t depth, const T *a, const T *rows, const T *decay, T *sums, int64_t stride) {
  if (depth < 1) __builtin_unreachable();
  Vector<T> tile[count][vectors];
#pragma GCC unroll 8
  for (int r = 0; r < count; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
      tile[r][v] = load_vector(sums + r * stride + v * lanes<T>);
      if (decay) tile[r][v] *= decay[r];
    }
  for (int64_t p = 0; p < depth; p++, a += Where::row, rows += stride) {
    Vector<T> columns[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) columns[v] = load_vector(rows + v * lanes<T>);
#pragma GCC unroll 8
    for (int r = 0; r < count; r++)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) tile[r][v] = multiply_add<T>(columns[v], a[r * Where::sum], tile[r][v]);
  }
#pragma GCC unroll 8
  for (int r = 0; r < count; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) store_vector(tile[r][v], sums + r * stride + v * lanes<T>);
}

// The same for `count` sums, a multiple of `step`; rows are whole, their length `stride` is a multiple of a vector's,
// and p is limited to range_of(r), where r is the first of `step` sums. Columns are the outer loop, so that the rows
// read stay in the L1 cache.
template <class Where, int step, class T, class RangeOf>
inline void add_rows(int64_t count, const T *a, const T *rows, const T *decay, T *sums, int64_t stride,
                     RangeOf range_of) {
  auto add = [&](auto vectors, int64_t column) {
    for (int64_t r = 0; r < count; r += step) {
      AttentionRange range = range_of(r);
      if (range.first < range.end)
        add_rows_tile<Where, step, vectors>(range.end - range.first, a + range.first * Where::row + r * Where::sum,
                                            rows + range.first * stride + column, decay ? decay + r : nullptr,
                                            sums + r * stride + column, stride);
    }
  };
  int64_t column = 0;
  for (; column + row_vectors * lanes<T> <= stride; column += row_vectors * lanes<T>)
    add(std::integral_constant<int, row_vectors>(), column);
  for (; column < stride; column += lanes<T>) add(std::integral_constant<int, 1>(), column);
}

} // namespace orchard::ORCHARD_ISA
