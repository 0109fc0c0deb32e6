// Products of a few rows with columns by dot products, as in `linear` for a few tokens. Both operands are adjacent
// along k.
//
//   for each group of b's columns, in parallel: for each block of k: for a's rows, some at a time:
//     sums[row][column] += the dot product of the row's and the column's numbers in the block
//
// Each number of b is read once and in order; packing b for tiles would take longer than the product. A dot product has
// as many partial sums as a vector has lanes, and the blocks of k are fixed, so results do not depend on the number of
// threads. 16-bit numbers are widened first: a's numbers once, b's numbers for each block of columns.
#pragma once

#include "../memory.h"
#include "../parallel.h"
#include "finish.h"
#include "lane_sums.h"
#include "some_lanes.h"
#include "tile.h"
#include "tuning.h"

#include <algorithm>
#include <cmath>

namespace orchard::ORCHARD_ISA {

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int dot_rows = 4; // of 32 registers: 16 sums, the vectors of the columns, and one vector of a row
#else
constexpr int dot_rows = 2; // of 16 registers
#endif
constexpr int dot_columns = 4;

// The most results of a small product that dot products compute faster than packing b's columns: transposing 16 steps
// of a panel takes as long as about this many products of vectors.
template <class T> constexpr int64_t most_few_dots = 4 * lanes<T>;

// Returns whether to compute a product with few results as dot products: both operands must be adjacent along k. For
// smaller k, summing the lanes of vectors would take as long as packing. One thread of an EPYC (Zen 5): 3 x 127 x 3
// takes 0.14 µs instead of 0.46, 8 x 100 x 8 0.31 instead of 0.53, and 8 x 20 x 8 would take 0.20 instead of 0.16.
template <class T> inline bool is_for_few_dots(const MatrixProduct &p) {
  return p.a.column_stride == 1 && p.b.row_stride == 1 && p.k >= lanes<T> && p.m <= tile_rows &&
         p.m * p.n <= std::min<int64_t>(most_few_dots<T>, 2 * p.k);
}

// sums[r * dot_columns + c] += the dot product of row r of a and column c of b.
template <class T, int rows, int columns>
void add_dots(const T *a, int64_t a_stride, const T *b, int64_t b_stride, int64_t depth, T *sums) {
  Vector<T> parts[rows * dot_columns] = {};
  int64_t p = 0;
  for (; p + lanes<T> <= depth; p += lanes<T>) {
    Vector<T> right[columns];
#pragma GCC unroll 4
    for (int c = 0; c < columns; c++) right[c] = load_vector(b + c * b_stride + p);
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
      const Vector<T> left = load_vector(a + r * a_stride + p);
#pragma GCC unroll 4
      for (int c = 0; c < columns; c++) {
        Vector<T> &part = parts[r * dot_columns + c];
        part = multiply_add<T>(right[c], left, part);
      }
    }
  }
  if (p < depth) {
    const SomeLanes<T> rest(depth - p);
    Vector<T> right[columns];
#pragma GCC unroll 4
    for (int c = 0; c < columns; c++) right[c] = rest.load(b + c * b_stride + p);
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
      const Vector<T> left = rest.load(a + r * a_stride + p);
#pragma GCC unroll 4
      for (int c = 0; c < columns; c++) {
        Vector<T> &part = parts[r * dot_columns + c];
        part = multiply_add<T>(right[c], left, part);
      }
    }
  }
  add_sums_of_lanes<T>(parts, sums);
}

template <class T, int columns>
void add_dots_of_rows(const T *a, int64_t a_stride, int64_t rows, const T *b, int64_t b_stride, int64_t depth,
                      T *sums) {
  int64_t row = 0;
  for (; row + dot_rows <= rows; row += dot_rows)
    add_dots<T, dot_rows, columns>(a + row * a_stride, a_stride, b, b_stride, depth, sums + row * dot_columns);
  const T *last = a + row * a_stride;
  T *last_sums = sums + row * dot_columns;
  if constexpr (dot_rows > 2) {
    if (rows - row == 3) return add_dots<T, 3, columns>(last, a_stride, b, b_stride, depth, last_sums);
    if (rows - row == 2) return add_dots<T, 2, columns>(last, a_stride, b, b_stride, depth, last_sums);
  }
  if (rows - row == 1) add_dots<T, 1, columns>(last, a_stride, b, b_stride, depth, last_sums);
}

// The rows of a, converted to the accumulator's type.
template <class T> struct WideRows {
  const T *numbers;
  int64_t stride;
};

// Computes the columns of a group, from `column` on; the last group may have fewer.
template <class S> void multiply_group(const MatrixProduct &p, const WideRows<Accumulator<S>> &rows, int64_t column) {
  using T = Accumulator<S>;
  const int64_t columns = std::min<int64_t>(dot_columns, p.n - column);
  T sums[tile_rows * dot_columns] = {};
  alignas(line_bytes)
      T space[std::is_same_v<S, T> ? 1 : dot_columns * tuning::matmul::dot_depth]; // no vector spans two cache lines
  for (int64_t depth = 0; depth < p.k; depth += tuning::matmul::dot_depth) {
    const int64_t length = std::min(tuning::matmul::dot_depth, p.k - depth);
    const T *a = rows.numbers + depth, *b = space;
    int64_t b_stride = tuning::matmul::dot_depth;
    if constexpr (std::is_same_v<S, T>) b = element_of<T>(p.b, depth, column), b_stride = p.b.column_stride;
    else
      for (int64_t c = 0; c < columns; c++)
        load_row<T>(element_of<S>(p.b, depth, column + c), space + c * tuning::matmul::dot_depth, length);
    switch (columns) {
    case 1: add_dots_of_rows<T, 1>(a, rows.stride, p.m, b, b_stride, length, sums); break;
    case 2: add_dots_of_rows<T, 2>(a, rows.stride, p.m, b, b_stride, length, sums); break;
    case 3: add_dots_of_rows<T, 3>(a, rows.stride, p.m, b, b_stride, length, sums); break;
    default: add_dots_of_rows<T, dot_columns>(a, rows.stride, p.m, b, b_stride, length, sums);
    }
  }
  for (int64_t row = 0; row < p.m; row++) finish_row<S>(p, row, column, columns, sums + row * dot_columns);
}

template <class S> void multiply_dots(const MatrixProduct &p) {
  using T = Accumulator<S>;
  constexpr bool is_wide = std::is_same_v<S, T>;
  Scratch<T> widened(is_wide ? 0 : p.m * p.k);
  WideRows<T> rows{widened.data(), p.k};
  if constexpr (is_wide) rows = {element_of<T>(p.a, 0, 0), p.a.row_stride};
  else
    for (int64_t row = 0; row < p.m; row++) load_row<T>(element_of<S>(p.a, row, 0), widened.data() + row * p.k, p.k);
  const int64_t groups = (p.n + dot_columns - 1) / dot_columns;
  const double operations = p.operations() / double(groups);
  parallel_for(groups, static_cast<int64_t>(std::ceil(tuning::matmul::dot_operations_of_task / operations)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t group = begin; group < end; group++) multiply_group<S>(p, rows, group * dot_columns);
               });
}

} // namespace orchard::ORCHARD_ISA
