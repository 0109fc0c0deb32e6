// Gaussian elimination with partial pivoting for a matrix in whole vectors. Each panel of columns is stored
// column-major while it is eliminated. Then a matrix product updates the columns to its right, in the rows below the
// panel's pivots.
#pragma once

#include "lu_panel.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {

template <class T> inline T smallest_lane(Vector<T> v) { return -largest_lane<T>(-v); }

// The columns of a panel, `stride` elements apart: each has `rows` elements of the matrix, then zeros.
template <class T> class Panel {
public:
  Panel() = default;
  Panel(T *a, int64_t rows, bool pivot) : a_(a), stride_(padded(rows)), pivot_(pivot) {}

  T *column(int64_t j) const { return a_ + j * stride_; }

  // Loads the rows from `a` on by transposing squares; the rows are padded to whole squares too.
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

  // Eliminates column k. Returns the row that was swapped with row k.
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
  // Returns a mask of the lanes after row k, in the vector that holds row k.
  static MaskOf<T> after(int64_t k) { return lane_numbers() > Vector<T>{} + T(k % lanes<T>); }
  static Vector<T> lane_numbers() {
    static constexpr T numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return load_vector(numbers);
  }
  static int64_t vector_of(int64_t k) { return k / lanes<T> * lanes<T>; }

  // Returns the first row with the largest magnitude, from row k on. NaN is skipped unless it is in row k, as in
  // LAPACK's idamax. The code does not branch on the numbers, since such branches would often be mispredicted.
  int64_t largest_of(int64_t k) const {
    const T *values = column(k);
    const int64_t first = vector_of(k);
    const T top = std::abs(values[k]);
    Vector<T> at = lane_numbers() + T(first);
    const Vector<T> head = magnitude<T>(load_vector(values + first)), row = Vector<T>{} + T(k);
    const auto is_head = after(k) & (head > top);
    Vector<T> best = is_head ? head : Vector<T>{} + top, best_at = is_head ? at : row;
    for (int64_t i = first + lanes<T>; i < stride_; i += lanes<T>) {
      at += T(lanes<T>);
      const Vector<T> size = magnitude<T>(load_vector(values + i));
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
    T *values = column(k);
    const int64_t first = vector_of(k);
    const Vector<T> head = load_vector(values + first);
    store_vector<T>(after(k) ? quotient(head) : head, values + first);
    for (int64_t i = first + lanes<T>; i < stride_; i += lanes<T>)
      store_vector<T>(quotient(load_vector(values + i)), values + i);
  }

  // Subtracts column k times the element of row k from each of `count` columns, starting with column j.
  template <int count> void subtract(int64_t k, int64_t j) const {
    const T *values = column(k);
    const int64_t first = vector_of(k);
    const MaskOf<T> mask = after(k);
    T *to[count], top[count];
    for (int c = 0; c < count; c++) to[c] = column(j + c), top[c] = to[c][k];
    const Vector<T> head = load_vector(values + first);
    for (int c = 0; c < count; c++) {
      const Vector<T> y = load_vector(to[c] + first);
      store_vector<T>(mask ? minus_product<T>(y, top[c], head) : y, to[c] + first);
    }
    for (int64_t i = first + lanes<T>; i < stride_; i += lanes<T>) {
      const Vector<T> x = load_vector(values + i);
      for (int c = 0; c < count; c++) store_vector<T>(minus_product<T>(load_vector(to[c] + i), top[c], x), to[c] + i);
    }
  }

  T *a_ = nullptr;
  int64_t stride_ = 0;
  bool pivot_ = true;
};

// The rows of a tile of sums in registers, and the largest number of vectors in each row.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int tile_rows = 8, tile_vectors = 3;
#else
constexpr int tile_rows = 4, tile_vectors = 2;
#endif

// C = B - L U for `rows` rows of B, C and L, and `vectors` vectors of B, C and U. Row i of B begins at from(i); rows of
// the other matrices are `width` elements apart.
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
  auto row_at = [&](int64_t r) { return from(i + r); };
  for (; i + tile_rows <= rows; i += tile_rows)
    subtract_tile<T, tile_rows, vectors>(row_at, c + i * width, l + i * width, u, depth, width);
  for (; i < rows; i++) subtract_tile<T, 1, vectors>(row_at, c + i * width, l + i * width, u, depth, width);
}

template <class T, class Rows>
inline void subtract_product(const Rows &from, T *c, const T *l, const T *u, int64_t rows, int64_t columns,
                             int64_t depth, int64_t width) {
  int64_t j = 0;
  auto row_at = [&](int64_t i) { return from(i) + j; };
  while (j < columns) {
    const int64_t vectors = (columns - j) / lanes<T>;
    if (tile_vectors == 3 && vectors >= 3 && vectors != 4) {
      subtract_columns<T, tile_vectors>(row_at, c + j, l, u + j, rows, depth, width);
      j += tile_vectors * lanes<T>;
    } else if (vectors >= 2) {
      subtract_columns<T, 2>(row_at, c + j, l, u + j, rows, depth, width);
      j += 2 * lanes<T>;
    } else {
      subtract_columns<T, 1>(row_at, c + j, l, u + j, rows, depth, width);
      j += lanes<T>;
    }
  }
}

// Solves L X = B for lu_unit rows, where L has a diagonal of 1, one vector of all rows at a time. Row i of B begins at
// from(i). move(j) is called after vector j is read and before X is written.
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

// Repeats the row swaps of the panel that begins at column `first`, in rows of `columns` elements, which are whole
// vectors.
template <class T>
inline void swap_rows(const Elimination<T> &elimination, int64_t first, int64_t steps, int64_t columns) {
  for (int64_t k = first; k < first + steps; k++) {
    if (elimination.pivots[k] == k) continue;
    T *x = elimination.a + k * elimination.width, *y = elimination.a + elimination.pivots[k] * elimination.width;
    for (int64_t j = 0; j < columns; j += lanes<T>) {
      const Vector<T> row = load_vector(x + j);
      store_vector<T>(load_vector(y + j), x + j);
      store_vector<T>(row, y + j);
    }
  }
}

// Updates the columns to the right of an eliminated panel: swaps their rows, then subtracts the products.
template <class T>
inline void follow(const Elimination<T> &elimination, const Panel<T> &panel, int64_t first, int64_t steps) {
  const int64_t width = elimination.width, right = width - first - panel_columns;
  T *corner = elimination.a + first * (width + 1), *top = corner + panel_columns, *below = top + steps * width;
  swap_rows(elimination, first, steps, width);
  panel.store(corner, width);
  if (right <= 0) return;
  substitute_top<T>([=](int64_t i) { return top + i * width; }, top, corner, right, width, [](int64_t) {});
  subtract_product<T>([=](int64_t i) { return below + i * width; }, below, corner + steps * width, top,
                      elimination.rows - first - steps, right, steps, width);
}

// Updates the columns to the right of an eliminated panel of few rows. Rows are swapped as they are read: for the first
// panel from the input, if it is stored elsewhere, otherwise in place. A row that a pivot displaces moves to the
// pivot's previous position.
template <class T, int rows>
inline void follow(const Elimination<T> &elimination, FewRows<T, rows> &panel, int64_t first, int64_t steps) {
  const int64_t width = elimination.width, right = width - first - panel_columns;
  T *corner = elimination.a + first * (width + 1), *top = corner + panel_columns;
  panel.store(corner, width);
  swap_rows(elimination, first, steps, first);
  if (right <= 0) return;
  const bool is_elsewhere = first == 0 && elimination.from != elimination.a;
  const T *const source = is_elsewhere ? elimination.from + panel_columns : top;
  const int64_t source_width = is_elsewhere ? elimination.from_width : width;
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
                      elimination.rows - first - steps, right, steps, width);
}

template <class T> inline void note(const Elimination<T> &elimination, int64_t step, int64_t pivot, T value) {
  elimination.pivots[step] = static_cast<int32_t>(pivot);
  const bool fails = value == 0 && *elimination.info == 0;
  *elimination.info = fails ? static_cast<int32_t>(step + 1) : *elimination.info;
}

template <class T> int64_t steps_of(const Elimination<T> &elimination, int64_t first) {
  return std::min({panel_columns, elimination.rows - first, elimination.columns - first});
}

template <class T> void eliminate_panel(const Elimination<T> &elimination, int64_t first) {
  const Panel<T> panel(elimination.scratch, elimination.rows - first, elimination.pivot);
  panel.load(elimination.a + first * (elimination.width + 1), elimination.width);
  for (int64_t k = 0; k < steps_of(elimination, first); k++) {
    const int64_t pivot = first + panel.eliminate(k);
    note(elimination, first + k, pivot, panel.column(k)[k]);
  }
  follow(elimination, panel, first, steps_of(elimination, first));
}

// Interleaves the elimination of several matrices, column by column: the steps of one column depend on each other, but
// the steps of two matrices do not.
template <class T, int rows> void eliminate_few(const Elimination<T> *all, int64_t count, int64_t first) {
  FewRows<T, rows> panels[lu_together];
  const int64_t steps = steps_of(*all, first);
  for (int64_t m = 0; m < count; m++) {
    const auto &elimination = all[m];
    if (first == 0) panels[m].load(elimination.from, elimination.from_width, elimination.pivot);
    else panels[m].load(elimination.a + first * (elimination.width + 1), elimination.width, elimination.pivot);
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
