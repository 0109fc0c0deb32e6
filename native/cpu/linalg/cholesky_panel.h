// A panel of a large matrix's Cholesky factor: some rows of U of A = Uᵀ U, from the diagonal on. It is packed in strips
// of columns, so that reads are contiguous: element (k, c) of a strip is strip[k * strip_columns + c]. Panels of a
// lower factor are transposed on load and store.
#pragma once

#include "../matmul/transpose.h"
#include "cholesky.h"

#include <algorithm>
#include <cmath>

namespace orchard::ORCHARD_ISA {

// `solved_rows` rows are solved at once, one vector of columns of each in a register. `updated_rows` is the height of a
// tile when the rest of the matrix is updated.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int solved_rows = 16;
template <class T> constexpr int updated_rows = 8;
#else
constexpr int solved_rows = 8;
template <class T> constexpr int updated_rows = 4;
#endif

template <class T> class PackedPanel {
public:
  explicit PackedPanel(const CholeskyPanel<T> &panel) : panel_(panel), depth_(panel.padded_depth()) {}

  // Factors the diagonal block: the first columns, as many as the panel has rows. Returns the order of the first
  // leading minor that is not positive, or 0.
  int64_t factorize() const {
    if (depth_ == panel_.depth)
      for (int64_t s = 0; s < strips(); s++) load_strip(s);
    else load_padded();
    int64_t failed = 0;
    for (int64_t row = 0; row < depth_ && failed == 0; row += solved_rows) {
      for (int64_t column = row; column < row + solved_rows; column += lanes<T>) solve<false>(row, element(0, column));
      failed = factorize_square(row);
      for (int64_t column = row + solved_rows; column < depth_; column += lanes<T>)
        solve<true>(row, element(0, column));
    }
    store_diagonal();
    return failed;
  }

  // Solves a strip to the right of the diagonal block, and zeros its mirror image.
  void solve_strip(int64_t s) const {
    load_strip(s);
    for (int64_t row = 0; row < depth_; row += solved_rows)
      for (int64_t column = 0; column < strip_columns; column += lanes<T>) solve<true>(row, strip(s) + column);
    store_strip(s);
  }

  // Subtracts the panel's products from a square of the rest of the matrix, at the rows of one strip and the columns of
  // another.
  void subtract_square(int64_t rows, int64_t columns) const {
    const int64_t row = panel_.first + rows * strip_columns, column = panel_.first + columns * strip_columns;
    const int64_t height = std::min(strip_columns, panel_.n - row), width = std::min(strip_columns, panel_.n - column);
    const T *from = panel_.from + row * panel_.n + column;
    T *to = panel_.to + row * panel_.n + column;
    if (height == strip_columns && width == strip_columns)
      return subtract({from, panel_.n, to, panel_.n, strip(rows), strip(columns)}, rows == columns);
    T space[strip_columns * strip_columns] = {};
    for (int64_t r = 0; r < height; r++) std::copy_n(from + r * panel_.n, width, space + r * strip_columns);
    subtract({space, strip_columns, space, strip_columns, strip(rows), strip(columns)}, rows == columns);
    for (int64_t r = 0; r < height; r++) std::copy_n(space + r * strip_columns, width, to + r * panel_.n);
  }

private:
  int64_t strips() const { return depth_ / strip_columns; }
  T *strip(int64_t s) const { return panel_.packed + s * strip_columns * depth_; }
  T *element(int64_t row, int64_t column) const {
    return strip(column / strip_columns) + row * strip_columns + column % strip_columns;
  }
  static Vector<T> minus_product(Vector<T> y, T factor, Vector<T> x) { return multiply_add<T>(x, -factor, y); }

  // Returns the index of the panel's element (k, c) in the row-major matrix, in its lower or its upper triangle.
  int64_t place(int64_t k, int64_t c) const {
    const int64_t row = panel_.first + k, column = panel_.first + c;
    return panel_.upper ? row * panel_.n + column : column * panel_.n + row;
  }

  void load_strip(int64_t s) const {
    const int64_t first = s * strip_columns, width = std::min(strip_columns, panel_.n - panel_.first - first);
    T *to = strip(s);
    if (panel_.upper) {
      for (int64_t k = 0; k < depth_; k++) {
        std::copy_n(panel_.from + place(k, first), width, to + k * strip_columns);
        std::fill_n(to + k * strip_columns + width, strip_columns - width, T(0));
      }
      return;
    }
    for (int64_t c = 0; c < strip_columns; c += lanes<T>)
      for (int64_t k = 0; k < depth_; k += lanes<T>) {
        const T *from = panel_.from + place(k, first) + c * panel_.n;
        if (c + lanes<T> <= width) transpose_square(from, panel_.n, to + k * strip_columns + c, strip_columns);
        else transpose_part_of_square(from, panel_.n, width - c, to + k * strip_columns + c, strip_columns);
      }
  }

  // Loads the last panel of the matrix and pads it with rows of the identity matrix.
  void load_padded() const {
    for (int64_t k = 0; k < depth_; k++)
      for (int64_t c = k; c < depth_; c++) *element(k, c) = c < panel_.depth ? panel_.from[place(k, c)] : T(k == c);
  }

  // Solves some rows for one vector of columns: subtracts the products of the rows above, and with `divides` divides by
  // the square on the diagonal.
  template <bool divides> void solve(int64_t row, T *columns) const {
    const T *factors = element(0, row);
    Vector<T> x[solved_rows];
#pragma GCC unroll 16
    for (int i = 0; i < solved_rows; i++) x[i] = load_vector(columns + (row + i) * strip_columns);
    for (int64_t k = 0; k < row; k++) {
      const Vector<T> known = load_vector(columns + k * strip_columns);
#pragma GCC unroll 16
      for (int i = 0; i < solved_rows; i++) x[i] = minus_product(x[i], factors[k * strip_columns + i], known);
    }
    const T *square = factors + row * strip_columns;
#pragma GCC unroll 16
    for (int i = 0; i < solved_rows; i++) {
      if (divides) {
        x[i] = x[i] * panel_.inverse[row + i];
#pragma GCC unroll 16
        for (int j = i + 1; j < solved_rows; j++) x[j] = minus_product(x[j], square[i * strip_columns + j], x[i]);
      }
      store_vector<T>(x[i], columns + (row + i) * strip_columns);
    }
  }

  // Factors the square on the diagonal that begins at `row`; the products of the rows above are already subtracted.
  int64_t factorize_square(int64_t row) const {
    T *square = element(row, row);
    for (int i = 0; i < solved_rows; i++) {
      T *pivot_row = square + i * strip_columns;
      if (!(pivot_row[i] > 0)) return row + i + 1;
      const T root = std::sqrt(pivot_row[i]), inverse = 1 / root;
      panel_.inverse[row + i] = inverse;
      for (int v = i / lanes<T> * lanes<T>; v < solved_rows; v += lanes<T>)
        store_vector<T>(load_vector(pivot_row + v) * inverse, pivot_row + v);
      pivot_row[i] = root;
      for (int j = i + 1; j < solved_rows; j++)
        for (int v = j / lanes<T> * lanes<T>; v < solved_rows; v += lanes<T>) {
          T *to = square + j * strip_columns + v;
          store_vector<T>(minus_product(load_vector(to), pivot_row[j], load_vector(pivot_row + v)), to);
        }
    }
    return 0;
  }

  // Stores the matrix row by row. Rows of a lower factor are transposed squares of the panel, except those on the
  // diagonal.
  void store_diagonal() const {
    for (int64_t row = 0; row < panel_.depth; row += lanes<T>) {
      const int64_t height = std::min<int64_t>(lanes<T>, panel_.depth - row);
      if (!panel_.upper)
        for (int64_t k = 0; k < row; k += lanes<T>)
          transpose_rows<T>([&](int r) { return element(k + r, row); }, panel_.to + place(k, row), panel_.n, height);
      for (int64_t r = row; r < row + height; r++) store_diagonal_row(r, row, height);
    }
  }
  void store_diagonal_row(int64_t r, int64_t square, int64_t width) const {
    T *to = panel_.to + (panel_.first + r) * panel_.n + panel_.first;
    if (panel_.upper) {
      std::fill_n(to, r, T(0));
      for (int64_t c = r; c < panel_.depth; c++) to[c] = *element(r, c);
      return;
    }
    for (int64_t c = square; c < square + width; c++) to[c] = c <= r ? *element(c, r) : T(0);
    std::fill(to + square + width, to + panel_.depth, T(0));
  }

  void store_strip(int64_t s) const {
    const int64_t first = s * strip_columns, width = std::min(strip_columns, panel_.n - panel_.first - first);
    const T *from = strip(s);
    if (panel_.upper) {
      for (int64_t k = 0; k < depth_; k++) std::copy_n(from + k * strip_columns, width, panel_.to + place(k, first));
      for (int64_t c = 0; c < width; c++)
        std::fill_n(panel_.to + (panel_.first + first + c) * panel_.n + panel_.first, depth_, T(0));
      return;
    }
    for (int64_t c = 0; c < width; c += lanes<T>)
      for (int64_t k = 0; k < depth_; k += lanes<T>)
        transpose_rows<T>([&](int r) { return from + (k + r) * strip_columns + c; },
                          panel_.to + place(k, first) + c * panel_.n, panel_.n, width - c);
    for (int64_t k = 0; k < depth_; k++)
      std::fill_n(panel_.to + (panel_.first + k) * panel_.n + panel_.first + first, width, T(0));
  }

  // to = from - rowsᵀ columns
  struct Square {
    const T *from;
    int64_t from_stride;
    T *to;
    int64_t to_stride;
    const T *rows, *columns;
  };

  // Prefetches `from`, so that it is in the cache when the products are summed.
  template <int vectors> void subtract_tile(const Square &square, int64_t row, int64_t column) const {
    constexpr int height = updated_rows<T>;
    const T *from = square.from + row * square.from_stride + column;
#pragma GCC unroll 8
    for (int r = 0; r < height; r++)
#pragma GCC unroll 2
      for (int v = 0; v < vectors; v++) __builtin_prefetch(from + r * square.from_stride + v * lanes<T>);
    Vector<T> sums[height][vectors] = {};
    const T *factors = square.rows + row, *others = square.columns + column;
    for (int64_t k = 0; k < depth_; k++, factors += strip_columns, others += strip_columns) {
      Vector<T> known[vectors];
#pragma GCC unroll 2
      for (int v = 0; v < vectors; v++) known[v] = load_vector(others + v * lanes<T>);
#pragma GCC unroll 8
      for (int r = 0; r < height; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) sums[r][v] = multiply_add<T>(known[v], factors[r], sums[r][v]);
    }
    T *to = square.to + row * square.to_stride + column;
#pragma GCC unroll 8
    for (int r = 0; r < height; r++)
#pragma GCC unroll 2
      for (int v = 0; v < vectors; v++)
        store_vector<T>(load_vector(from + r * square.from_stride + v * lanes<T>) - sums[r][v],
                        to + r * square.to_stride + v * lanes<T>);
  }

  void subtract(const Square &square, bool is_diagonal) const {
    constexpr int height = updated_rows<T>, two = 2 * lanes<T>;
    for (int64_t row = 0; row < strip_columns; row += height) {
      if (!is_diagonal) {
        for (int64_t column = 0; column < strip_columns; column += two) subtract_tile<2>(square, row, column);
        continue;
      }
      for (int64_t column = 0; column < strip_columns; column += lanes<T>)
        if (panel_.upper ? column + lanes<T> > row : column < row + height) subtract_tile<1>(square, row, column);
    }
  }

  const CholeskyPanel<T> &panel_;
  const int64_t depth_;
};

} // namespace orchard::ORCHARD_ISA
