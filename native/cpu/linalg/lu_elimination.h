// Gaussian elimination with partial pivoting of a matrix in whole vectors: panels of columns, which lie column by
// column while they are eliminated, and for each a product that changes what is right of and below it.
#pragma once

#include "../matmul/transpose.h"
#include "lu.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace orchard::ORCHARD_ISA {

// Columns of a panel: whole vectors of both types on every instruction set.
constexpr int64_t panel_columns = lu_unit;

template <class T> using MaskOf = decltype(Vector<T>{} > Vector<T>{});

template <class T> inline Vector<T> magnitude(Vector<T> v) { return v < 0 ? -v : v; }

// The largest lane, of which none is NaN.
template <class T> inline T largest_lane(Vector<T> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_reduce_max_ps((__m512)v);
  else return _mm512_reduce_max_pd((__m512d)v);
#else
  T largest = v[0];
  for (int lane = 1; lane < lanes<T>; lane++) largest = v[lane] > largest ? v[lane] : largest;
  return largest;
#endif
}

template <class T> inline T smallest_lane(Vector<T> v) { return -largest_lane<T>(-v); }

// y - factor x
template <class T> inline Vector<T> minus_product(Vector<T> y, T factor, Vector<T> x) {
  return multiply_add<T>(x, -factor, y);
}

// The columns of a panel one after the other, `stride` elements apart, of which `rows` are there and the others 0.
template <class T> class Panel {
public:
  Panel() = default;
  Panel(T *a, int64_t rows, bool pivot) : a_(a), stride_(padded(rows)), pivot_(pivot) {}

  T *column(int64_t j) const { return a_ + j * stride_; }

  // Squares of the rows from `a` on, whose rows are padded to whole squares too.
  void load(const T *a, int64_t width) const {
    for (int64_t i = 0; i < stride_; i += lanes<T>)
      for (int64_t j = 0; j < panel_columns; j += lanes<T>)
        transpose_square(a + i * width + j, width, column(j) + i, stride_);
  }
  void store(T *a, int64_t width) const {
    for (int64_t i = 0; i < stride_; i += lanes<T>)
      for (int64_t j = 0; j < panel_columns; j += lanes<T>)
        transpose_square(column(j) + i, stride_, a + i * width + j, width);
  }

  // Eliminates column k. Returns the row that it was swapped with.
  int64_t eliminate(int64_t k) const {
    const int64_t pivot = pivot_ ? largest_of(k) : k;
    for (int64_t j = 0; j < panel_columns; j++) std::swap(column(j)[k], column(j)[pivot]);
    const T top = column(k)[k];
    if (top != 0 || !pivot_) divide(k, top);
    int64_t j = k + 1;
    for (; j + 4 <= panel_columns; j += 4) subtract<4>(k, j);
    for (; j < panel_columns; j++) subtract<1>(k, j);
    return pivot;
  }

private:
  // Which lanes of the vector that holds row k lie after it.
  static MaskOf<T> after(int64_t k) { return lane_numbers() > Vector<T>{} + T(k % lanes<T>); }
  static Vector<T> lane_numbers() {
    static constexpr T numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return load_vector(numbers);
  }
  static int64_t vector_of(int64_t k) { return k / lanes<T> * lanes<T>; }

  // From row k on: the first of the largest; NaN is passed over unless it is row k's, as by LAPACK's idamax. There are
  // no branches on what the numbers are, which would be foreseen too seldom.
  int64_t largest_of(int64_t k) const {
    const T *own = column(k);
    const int64_t first = vector_of(k);
    const T top = std::abs(own[k]);
    Vector<T> at = lane_numbers() + T(first);
    const Vector<T> head = magnitude<T>(load_vector(own + first)), row = Vector<T>{} + T(k);
    const auto is_head = after(k) & (head > top);
    Vector<T> best = is_head ? head : Vector<T>{} + top, best_at = is_head ? at : row;
    for (int64_t i = first + lanes<T>; i < stride_; i += lanes<T>) {
      at += T(lanes<T>);
      const Vector<T> size = magnitude<T>(load_vector(own + i));
      const auto is_larger = size > best;
      best = is_larger ? size : best;
      best_at = is_larger ? at : best_at;
    }
    const Vector<T> none = Vector<T>{} + std::numeric_limits<T>::max();
    const T found = smallest_lane<T>(best == largest_lane<T>(best) ? best_at : none);
    return top != top ? k : static_cast<int64_t>(found);
  }

  void divide(int64_t k, T top) const {
    T *own = column(k);
    const int64_t first = vector_of(k);
    const Vector<T> head = load_vector(own + first);
    store_vector<T>(after(k) ? head / top : head, own + first);
    for (int64_t i = first + lanes<T>; i < stride_; i += lanes<T>) store_vector<T>(load_vector(own + i) / top, own + i);
  }

  // Takes column k, times the element of row k, from `count` columns from j on.
  template <int count> void subtract(int64_t k, int64_t j) const {
    const T *own = column(k);
    const int64_t first = vector_of(k);
    const MaskOf<T> mask = after(k);
    T *to[count], top[count];
    for (int c = 0; c < count; c++) to[c] = column(j + c), top[c] = to[c][k];
    const Vector<T> head = load_vector(own + first);
    for (int c = 0; c < count; c++) {
      const Vector<T> y = load_vector(to[c] + first);
      store_vector<T>(mask ? minus_product<T>(y, top[c], head) : y, to[c] + first);
    }
    for (int64_t i = first + lanes<T>; i < stride_; i += lanes<T>) {
      const Vector<T> x = load_vector(own + i);
      for (int c = 0; c < count; c++) store_vector<T>(minus_product<T>(load_vector(to[c] + i), top[c], x), to[c] + i);
    }
  }

  T *a_ = nullptr;
  int64_t stride_ = 0;
  bool pivot_ = true;
};

// Vectors of sums in registers.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int tile_sums = 16;
#else
constexpr int tile_sums = 8;
#endif

// C -= L U for `rows` rows of C and L and `vectors` vectors of C and U, all rows `width` elements apart.
template <class T, int rows, int vectors>
inline void subtract_tile(T *c, const T *l, const T *u, int64_t depth, int64_t width) {
  Vector<T> sums[rows][vectors];
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) sums[r][v] = load_vector(c + r * width + v * lanes<T>);
  for (int64_t k = 0; k < depth; k++) {
    Vector<T> row[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) row[v] = load_vector(u + k * width + v * lanes<T>);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
      for (int v = 0; v < vectors; v++) sums[r][v] = minus_product<T>(sums[r][v], l[r * width + k], row[v]);
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) store_vector<T>(sums[r][v], c + r * width + v * lanes<T>);
}

template <class T, int vectors>
inline void subtract_columns(T *c, const T *l, const T *u, int64_t rows, int64_t depth, int64_t width) {
  constexpr int tile_rows = std::min(8, tile_sums / vectors);
  int64_t i = 0;
  for (; i + tile_rows <= rows; i += tile_rows)
    subtract_tile<T, tile_rows, vectors>(c + i * width, l + i * width, u, depth, width);
  for (; i < rows; i++) subtract_tile<T, 1, vectors>(c + i * width, l + i * width, u, depth, width);
}

template <class T>
inline void subtract_product(T *c, const T *l, const T *u, int64_t rows, int64_t columns, int64_t depth,
                             int64_t width) {
  constexpr int most = tile_sums / 4;
  int64_t j = 0;
  for (; j + most * lanes<T> <= columns; j += most * lanes<T>)
    subtract_columns<T, most>(c + j, l, u + j, rows, depth, width);
  for (; j + 2 * lanes<T> <= columns; j += 2 * lanes<T>) subtract_columns<T, 2>(c + j, l, u + j, rows, depth, width);
  for (; j < columns; j += lanes<T>) subtract_columns<T, 1>(c + j, l, u + j, rows, depth, width);
}

// Replaces lu_unit rows of whole vectors by X of L X = B, L having a diagonal of 1: a vector of all of them at a time.
template <class T> inline void substitute_top(T *b, const T *l, int64_t columns, int64_t width) {
  for (int64_t j = 0; j < columns; j += lanes<T>) {
    Vector<T> rows[lu_unit];
#pragma GCC unroll 16
    for (int i = 0; i < lu_unit; i++) rows[i] = load_vector(b + i * width + j);
#pragma GCC unroll 16
    for (int k = 0; k < lu_unit; k++)
#pragma GCC unroll 16
      for (int i = k + 1; i < lu_unit; i++) rows[i] = minus_product<T>(rows[i], l[i * width + k], rows[k]);
#pragma GCC unroll 16
    for (int i = 1; i < lu_unit; i++) store_vector<T>(rows[i], b + i * width + j);
  }
}

// X of T X = B for columns that are whole vectors, 64 elements of a row at a time: as soon as a row of X is known, it
// is taken from the other rows.
template <class T, int64_t chunk> inline void substitute_chunk(const Substitution<T> &own, T *b) {
  constexpr int vectors = chunk / lanes<T>;
  const auto [a, row_stride, column_stride, whole, n, columns, stride, upper, unit_diagonal] = own;
  for (int64_t step = 0; step < n; step++) {
    const int64_t k = upper ? n - 1 - step : step;
    Vector<T> x[vectors];
    for (int v = 0; v < vectors; v++) x[v] = load_vector(b + k * stride + v * lanes<T>);
    if (!unit_diagonal) {
      const T diagonal = a[k * (row_stride + column_stride)];
      for (int v = 0; v < vectors; v++) store_vector<T>(x[v] = x[v] / diagonal, b + k * stride + v * lanes<T>);
    }
    const int64_t first = upper ? 0 : k + 1, last = upper ? k : n;
    for (int64_t i = first; i < last; i++) {
      const T factor = a[i * row_stride + k * column_stride];
      T *row = b + i * stride;
      for (int v = 0; v < vectors; v++)
        store_vector<T>(minus_product<T>(load_vector(row + v * lanes<T>), factor, x[v]), row + v * lanes<T>);
    }
  }
}

// What is right of a panel and below it, once the panel is eliminated: its rows are swapped, and changed.
template <class T> inline void follow(const Elimination<T> &own, const Panel<T> &panel, int64_t first, int64_t steps) {
  const int64_t width = own.width, right = width - first - panel_columns;
  T *corner = own.a + first * (width + 1), *top = corner + panel_columns;
  for (int64_t k = first; k < first + steps; k++)
    if (own.pivots[k] != k) std::swap_ranges(own.a + k * width, own.a + (k + 1) * width, own.a + own.pivots[k] * width);
  panel.store(corner, width);
  if (right <= 0) return;
  if (steps == lu_unit) substitute_top(top, corner, right, width);
  else
    for (int64_t i = 1; i < steps; i++) subtract_product(top + i * width, corner + i * width, top, 1, right, i, width);
  const int64_t below = steps * width;
  subtract_product(top + below, corner + below, top, own.rows - first - steps, right, steps, width);
}

// Matrices of the same sizes in turn, column by column: a column's steps wait for each other, and two matrices' do not.
template <class T> void eliminate(const Elimination<T> *all, int64_t count) {
  const int64_t rows = all->rows, columns = all->columns;
  Panel<T> panels[lu_together];
  for (int64_t m = 0; m < count; m++) *all[m].info = 0;
  for (int64_t first = 0; first < std::min(rows, columns); first += panel_columns) {
    const int64_t below = rows - first, steps = std::min({panel_columns, below, columns - first});
    for (int64_t m = 0; m < count; m++) {
      panels[m] = Panel<T>(all[m].scratch, below, all[m].pivot);
      panels[m].load(all[m].a + first * (all[m].width + 1), all[m].width);
    }
    for (int64_t k = 0; k < steps; k++)
      for (int64_t m = 0; m < count; m++) {
        const int64_t pivot = first + panels[m].eliminate(k);
        all[m].pivots[first + k] = static_cast<int32_t>(pivot);
        const bool fails = panels[m].column(k)[k] == 0 && *all[m].info == 0;
        *all[m].info = fails ? static_cast<int32_t>(first + k + 1) : *all[m].info;
      }
    for (int64_t m = 0; m < count; m++) follow(all[m], panels[m], first, steps);
  }
}

} // namespace orchard::ORCHARD_ISA
