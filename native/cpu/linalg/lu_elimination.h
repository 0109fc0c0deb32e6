// Gaussian elimination with partial pivoting of a matrix in whole vectors: panels of columns, which lie column by
// column while they are eliminated, and for each a product that changes what is right of and below it.
#pragma once

#include "lu_panel.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {

template <class T> inline T smallest_lane(Vector<T> v) { return -largest_lane<T>(-v); }

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
    if (!has_reciprocal(std::abs(top))) return divide_by(k, [=](Vector<T> x) { return x / top; });
    const T inverse = 1 / top;
    divide_by(k, [=](Vector<T> x) { return x * inverse; });
  }
  template <class Quotient> void divide_by(int64_t k, Quotient &&quotient) const {
    T *own = column(k);
    const int64_t first = vector_of(k);
    const Vector<T> head = load_vector(own + first);
    store_vector<T>(after(k) ? quotient(head) : head, own + first);
    for (int64_t i = first + lanes<T>; i < stride_; i += lanes<T>)
      store_vector<T>(quotient(load_vector(own + i)), own + i);
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

// Rows of a tile of sums in registers, and at most so many vectors of each.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int tile_rows = 8, tile_vectors = 3;
#else
constexpr int tile_rows = 4, tile_vectors = 2;
#endif

// C = B - L U for `rows` rows of B, C and L and `vectors` vectors of B, C and U. Row i of B begins at from(i); those of
// the others are `width` elements apart.
template <class T, int rows, int vectors, class Rows>
inline void subtract_tile(const Rows &from, T *c, const T *l, const T *u, int64_t depth, int64_t width) {
  Vector<T> sums[rows][vectors];
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) sums[r][v] = load_vector(from(r) + v * lanes<T>);
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

template <class T, int vectors, class Rows>
inline void subtract_columns(const Rows &from, T *c, const T *l, const T *u, int64_t rows, int64_t depth,
                             int64_t width) {
  int64_t i = 0;
  auto own = [&](int64_t r) { return from(i + r); };
  for (; i + tile_rows <= rows; i += tile_rows)
    subtract_tile<T, tile_rows, vectors>(own, c + i * width, l + i * width, u, depth, width);
  for (; i < rows; i++) subtract_tile<T, 1, vectors>(own, c + i * width, l + i * width, u, depth, width);
}

template <class T, class Rows>
inline void subtract_product(const Rows &from, T *c, const T *l, const T *u, int64_t rows, int64_t columns,
                             int64_t depth, int64_t width) {
  int64_t j = 0;
  auto own = [&](int64_t i) { return from(i) + j; };
  while (j < columns) {
    const int64_t vectors = (columns - j) / lanes<T>;
    if (tile_vectors == 3 && vectors >= 3 && vectors != 4) {
      subtract_columns<T, tile_vectors>(own, c + j, l, u + j, rows, depth, width);
      j += tile_vectors * lanes<T>;
    } else if (vectors >= 2) {
      subtract_columns<T, 2>(own, c + j, l, u + j, rows, depth, width);
      j += 2 * lanes<T>;
    } else {
      subtract_columns<T, 1>(own, c + j, l, u + j, rows, depth, width);
      j += lanes<T>;
    }
  }
}

// X of L X = B for lu_unit rows, L having a diagonal of 1: a vector of all rows at a time. Row i of B begins at
// from(i); once they are read, and before any of X is written, move(j) is called for vector j.
template <class T, class Rows, class Move>
inline void substitute_top(const Rows &from, T *x, const T *l, int64_t columns, int64_t width, Move &&move) {
  for (int64_t j = 0; j < columns; j += lanes<T>) {
    Vector<T> rows[lu_unit];
#pragma GCC unroll 16
    for (int i = 0; i < lu_unit; i++) rows[i] = load_vector(from(i) + j);
    move(j);
#pragma GCC unroll 16
    for (int k = 0; k < lu_unit; k++)
#pragma GCC unroll 16
      for (int i = k + 1; i < lu_unit; i++) rows[i] = minus_product<T>(rows[i], l[i * width + k], rows[k]);
#pragma GCC unroll 16
    for (int i = 0; i < lu_unit; i++) store_vector<T>(rows[i], x + i * width + j);
  }
}

// Swaps rows of `columns` elements, which are whole vectors, as a panel's columns from `first` on were.
template <class T> inline void swap_rows(const Elimination<T> &own, int64_t first, int64_t steps, int64_t columns) {
  for (int64_t k = first; k < first + steps; k++) {
    if (own.pivots[k] == k) continue;
    T *x = own.a + k * own.width, *y = own.a + own.pivots[k] * own.width;
    for (int64_t j = 0; j < columns; j += lanes<T>) {
      const Vector<T> row = load_vector(x + j);
      store_vector<T>(load_vector(y + j), x + j);
      store_vector<T>(row, y + j);
    }
  }
}

// What is right of a panel and below it, once the panel is eliminated: its rows are swapped, and changed.
template <class T> inline void follow(const Elimination<T> &own, const Panel<T> &panel, int64_t first, int64_t steps) {
  const int64_t width = own.width, right = width - first - panel_columns;
  T *corner = own.a + first * (width + 1), *top = corner + panel_columns, *below = top + steps * width;
  swap_rows(own, first, steps, width);
  panel.store(corner, width);
  if (right <= 0) return;
  substitute_top<T>([=](int64_t i) { return top + i * width; }, top, corner, right, width, [](int64_t) {});
  subtract_product<T>([=](int64_t i) { return below + i * width; }, below, corner + steps * width, top,
                      own.rows - first - steps, right, steps, width);
}

// The same where rows are few. Those of the right side are swapped while they are read: of the first panel from where
// the matrix lies, else where they are. What a pivot displaces goes to where that was.
template <class T, int rows>
inline void follow(const Elimination<T> &own, FewRows<T, rows> &panel, int64_t first, int64_t steps) {
  const int64_t width = own.width, right = width - first - panel_columns;
  T *corner = own.a + first * (width + 1), *top = corner + panel_columns;
  panel.store(corner, width);
  swap_rows(own, first, steps, first);
  if (right <= 0) return;
  const bool is_elsewhere = first == 0 && own.from != own.a;
  const T *const source = is_elsewhere ? own.from + panel_columns : top;
  const int64_t source_width = is_elsewhere ? own.from_width : width;
  const T *displaced[lu_unit], *from[rows];
  T *vacant[lu_unit];
  int moves = 0;
  for (int i = 0; i < rows; i++) {
    const bool is_swapped = is_elsewhere || i < lu_unit;
    from[i] = source + (is_swapped ? panel.row_at(i) : i) * source_width;
  }
  for (int i = 0; i < lu_unit && !is_elsewhere; i++)
    if (const int to = panel.position_of(i); to >= lu_unit)
      displaced[moves] = top + i * width, vacant[moves++] = top + to * width;
  substitute_top<T>([&](int64_t i) { return from[i]; }, top, corner, right, width,
                    [&](int64_t j) {
                      for (int m = 0; m < moves; m++) store_vector<T>(load_vector(displaced[m] + j), vacant[m] + j);
                    });
  const int64_t below = steps * width;
  subtract_product<T>([&](int64_t i) { return from[steps + i]; }, top + below, corner + below, top,
                      own.rows - first - steps, right, steps, width);
}

template <class T> inline void note(const Elimination<T> &own, int64_t step, int64_t pivot, T value) {
  own.pivots[step] = static_cast<int32_t>(pivot);
  const bool fails = value == 0 && *own.info == 0;
  *own.info = fails ? static_cast<int32_t>(step + 1) : *own.info;
}

template <class T> int64_t steps_of(const Elimination<T> &own, int64_t first) {
  return std::min({panel_columns, own.rows - first, own.columns - first});
}

template <class T> void eliminate_panel(const Elimination<T> &own, int64_t first) {
  const Panel<T> panel(own.scratch, own.rows - first, own.pivot);
  panel.load(own.a + first * (own.width + 1), own.width);
  for (int64_t k = 0; k < steps_of(own, first); k++) {
    const int64_t pivot = first + panel.eliminate(k);
    note(own, first + k, pivot, panel.column(k)[k]);
  }
  follow(own, panel, first, steps_of(own, first));
}

// Matrices in turn, column by column: a column's steps wait for each other, and two matrices' do not.
template <class T, int rows> void eliminate_few(const Elimination<T> *all, int64_t count, int64_t first) {
  FewRows<T, rows> panels[lu_together];
  const int64_t steps = steps_of(*all, first);
  for (int64_t m = 0; m < count; m++) {
    const auto &own = all[m];
    if (first == 0) panels[m].load(own.from, own.from_width, own.pivot);
    else panels[m].load(own.a + first * (own.width + 1), own.width, own.pivot);
  }
  for (int64_t k = 0; k < steps; k++)
    for (int64_t m = 0; m < count; m++) {
      const int64_t pivot = first + panels[m].eliminate(k);
      note(all[m], first + k, pivot, panels[m].pivot(k));
    }
  for (int64_t m = 0; m < count; m++) follow(all[m], panels[m], first, steps);
}

template <class T> void eliminate(const Elimination<T> *all, int64_t count) {
  for (int64_t m = 0; m < count; m++) *all[m].info = 0;
  for (int64_t first = 0; first < std::min(all->rows, all->columns); first += panel_columns) {
    const int64_t rows = padded(all->rows - first);
    if (rows == 16) eliminate_few<T, 16>(all, count, first);
    else if (rows == 32) eliminate_few<T, 32>(all, count, first);
    else if (rows == 48) eliminate_few<T, 48>(all, count, first);
    else if (rows == 64) eliminate_few<T, 64>(all, count, first);
    else
      for (int64_t m = 0; m < count; m++) eliminate_panel(all[m], first);
  }
}

} // namespace orchard::ORCHARD_ISA
