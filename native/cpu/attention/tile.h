// Products of tiles whose sums stay in registers, as in ../matmul/tile.h.
//
// Scores are stored transposed, s[key][query]: a vector holds one key's scores of adjacent queries. A query's maximum
// and sum over the keys are then computed lane by lane, without shuffles. The other operand is read one number at a
// time and broadcast; so are the scores when they multiply rows.
#pragma once

#include "../matmul/simd.h"
#include "attention.h"

#include <numeric>

namespace orchard::ORCHARD_ISA {

// The rows of a tile, the largest number of vectors in a row of scores, and the vectors in a row of sums. They are
// chosen for the number of vector registers.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int panel_rows = 8, panel_vectors = 3, row_vectors = 2; // of 32 registers
#else
constexpr int panel_rows = 4, panel_vectors = 3, row_vectors = 2; // of 16 registers
#endif

// A wider panel reads keys less often, but wastes more lanes beyond the last query and outside the band. Panels of
// `vectors` vectors are fastest up to `most` vectors of queries, as measured with causal heads.
struct PanelSize {
  int64_t most;
  int vectors;
};
constexpr PanelSize panel_sizes[] = {{1, 1}, {16, 2}, {0, panel_vectors}};

// Calls use(vectors) with a compile-time constant: the width of panels for a sequence with `queries` queries.
template <class T, size_t at = 0, class Use> inline void with_panel_vectors(int64_t queries, Use use) {
  if constexpr (at + 1 < std::size(panel_sizes))
    if (queries > panel_sizes[at].most * lanes<T>) return with_panel_vectors<T, at + 1>(queries, use);
  use(std::integral_constant<int, panel_sizes[at].vectors>());
}

// Calls use(used), a compile-time constant of at most `most`.
template <int most, class Use> inline void with_used_vectors(int64_t used, Use use) {
  if constexpr (most > 1)
    if (used < most) return with_used_vectors<most - 1>(used, use);
  use(std::integral_constant<int, most>());
}

// c[r][l] = factor · Σ a[r][p] · b[p][l] over p < depth, for r < panel_rows and l < vectors · lanes. Rows of a are
// `stride` apart; rows of b and c have `width` numbers.
template <int vectors, int width, class T>
inline void multiply_panel(int64_t depth, const T *a, int64_t stride, const T *b, T factor, T *c) {
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

// The strides of the factors: row p is multiplied by a[p · row + r · sum] in sum r.
template <int row_step, int sum_step> struct Factors {
  static constexpr int row = row_step, sum = sum_step;
};
template <int width> using OfKeys = Factors<width, 1>;    // of s[key][query]: a row per key, a sum per query
template <int width> using OfQueries = Factors<1, width>; // a row per query, a sum per key

// sums[r][l] = decay[r] · sums[r][l] + Σ a(p, r) · rows[p][l] over p < depth, for r < count and l < vectors · lanes.
// Rows and sums are `stride` apart. A null `decay` stands for 1.
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

// Computes add_rows_tile for `count` sums, a multiple of `step`, over whole rows; their length `stride` is a multiple
// of a vector's. p is limited to range_of(r), where r is the first of `step` sums. Columns are the outer loop, so that
// the rows being read stay in the L1 cache.
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
