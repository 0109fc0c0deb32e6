#include "lu.h"

#include "lu_elimination.h"
#include "vectors.h"

#include <algorithm>
#include <cmath>

namespace orchard::ORCHARD_ISA {
namespace {

// Columns that are no whole vectors.
template <class T> void substitute_columns(const Substitution<T> &own, T *b, int64_t columns) {
  const auto [a, row_stride, column_stride, whole, n, all, stride, upper, unit_diagonal] = own;
  for (int64_t step = 0; step < n; step++) {
    const int64_t k = upper ? n - 1 - step : step;
    T *row = b + k * stride;
    if (!unit_diagonal) {
      const T diagonal = a[k * (row_stride + column_stride)];
      for (int64_t column = 0; column < columns; column++) row[column] /= diagonal;
    }
    const int64_t first = upper ? 0 : k + 1, last = upper ? k : n;
    for (int64_t i = first; i < last; i++)
      subtract_multiple(b + i * stride, row, a[i * row_stride + k * column_stride], columns);
  }
}

// Rows that are solved at once, two vectors of columns of each in registers.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int solved_rows = 8;
#else
constexpr int solved_rows = 4;
#endif

// Rows of X from one on: less the products of those before, and of each other.
template <class T, int rows, int vectors> inline void solve_rows(const Substitution<T> &own, T *b, int64_t row) {
  const T *a = own.a + row * own.row_stride;
  T *to = b + row * own.stride;
  Vector<T> x[rows][vectors];
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) x[r][v] = load_vector(to + r * own.stride + v * lanes<T>);
  for (int64_t k = 0; k < row; k++) {
    Vector<T> known[vectors];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) known[v] = load_vector(b + k * own.stride + v * lanes<T>);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
      for (int v = 0; v < vectors; v++)
        x[r][v] = minus_product<T>(x[r][v], a[r * own.row_stride + k * own.column_stride], known[v]);
  }
  a += row * own.column_stride;
#pragma GCC unroll 8
  for (int k = 0; k < rows; k++)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) {
      if (!own.unit_diagonal) x[k][v] = x[k][v] / a[k * (own.row_stride + own.column_stride)];
      store_vector<T>(x[k][v], to + k * own.stride + v * lanes<T>);
#pragma GCC unroll 8
      for (int r = k + 1; r < rows; r++)
        x[r][v] = minus_product<T>(x[r][v], a[r * own.row_stride + k * own.column_stride], x[k][v]);
    }
}

template <class T, int vectors> void substitute_block(const Substitution<T> &own, T *b) {
  int64_t row = 0;
  for (; row + solved_rows <= own.n; row += solved_rows) solve_rows<T, solved_rows, vectors>(own, b, row);
  for (; row < own.n; row++) solve_rows<T, 1, vectors>(own, b, row);
}

// An upper triangle is a lower one whose rows and columns are counted from the end.
template <class T> Substitution<T> as_lower(const Substitution<T> &own) {
  if (!own.upper) return own;
  const int64_t last = own.n - 1;
  return {own.a + last * (own.row_stride + own.column_stride),
          -own.row_stride,
          -own.column_stride,
          own.b + last * own.stride,
          own.n,
          own.columns,
          -own.stride,
          false,
          own.unit_diagonal};
}

template <class T> void substitute_rows(const Substitution<T> &own) {
  if (own.n == 0) return;
  const Substitution<T> lower = as_lower(own);
  int64_t column = 0;
  for (; column + 2 * lanes<T> <= own.columns; column += 2 * lanes<T>) substitute_block<T, 2>(lower, lower.b + column);
  for (; column + lanes<T> <= own.columns; column += lanes<T>) substitute_block<T, 1>(lower, lower.b + column);
  if (column < own.columns) substitute_columns(own, own.b + column, own.columns - column);
}

// One column, whose elements are adjacent: sums along the rows of T where those are adjacent, else each element that is
// known is taken from those that are not.
template <class T> void substitute_vector(const Substitution<T> &own) {
  const auto [a, row_stride, column_stride, b, n, columns, stride, upper, unit_diagonal] = own;
  for (int64_t step = 0; step < n; step++) {
    int64_t i = upper ? n - 1 - step : step, others = upper ? i + 1 : 0;
    if (column_stride == 1) b[i] -= dot(a + i * row_stride + others, b + others, step);
    if (!unit_diagonal) b[i] /= a[i * (row_stride + column_stride)];
    if (column_stride == 1) continue;
    int64_t next = upper ? 0 : i + 1;
    subtract_multiple(b + next, a + i * column_stride + next, b[i], n - 1 - step);
  }
}

template <class T> void substitute(const Substitution<T> &own) {
  bool is_vector = own.columns == 1 && own.stride == 1 && (own.column_stride == 1 || own.row_stride == 1);
  return is_vector ? substitute_vector(own) : substitute_rows(own);
}

// Element e of the l-th matrix at to[e * lanes + l]. Lanes without a matrix repeat the last one.
template <class T> void interleave(const T *from, int64_t elements, int64_t count, T *to) {
  int64_t e = 0;
  if (count == lanes<T>)
    for (; e + lanes<T> <= elements; e += lanes<T>) transpose_square(from + e, elements, to + e * lanes<T>, lanes<T>);
  for (; e < elements; e++)
    for (int64_t lane = 0; lane < lanes<T>; lane++)
      to[e * lanes<T> + lane] = from[std::min(lane, count - 1) * elements + e];
}

template <class T> void separate(const T *from, int64_t elements, int64_t count, T *to) {
  int64_t e = 0;
  if (count == lanes<T>)
    for (; e + lanes<T> <= elements; e += lanes<T>) transpose_square(from + e * lanes<T>, lanes<T>, to + e, elements);
  for (; e < elements; e++)
    for (int64_t lane = 0; lane < count; lane++) to[lane * elements + e] = from[e * lanes<T> + lane];
}

// Matrices side by side: a lane is a matrix.
template <class T> class Lanes {
public:
  explicit Lanes(const LuLanes<T> &own) : own_(own), a_(own.work), b_(own.work + own.rows * own.columns * lanes<T>) {}

  void run() {
    const auto &[count, rows, columns, right, pivot, a, b, lu, x, pivots, info, work] = own_;
    interleave(a, rows * columns, count, a_);
    if (b) interleave(b, rows * right, count, b_);
    else set_identity();
    const int64_t steps = std::min(rows, columns);
    Vector<T> failed{};
    for (int64_t k = 0; k < steps; k++) eliminate(k, failed);
    for (int64_t lane = 0; lane < count; lane++) info[lane] = static_cast<int32_t>(failed[lane]);
    if (lu) separate(a_, rows * columns, count, lu);
    if (right == 0) return;
    for (int64_t i = rows - 1; i >= 0; i--) substitute_back(i);
    separate(b_, rows * right, count, x);
  }

private:
  T *a(int64_t i, int64_t j) const { return a_ + (i * own_.columns + j) * lanes<T>; }
  T *b(int64_t i, int64_t j) const { return b_ + (i * own_.right + j) * lanes<T>; }

  void set_identity() {
    for (int64_t i = 0; i < own_.rows; i++)
      for (int64_t j = 0; j < own_.right; j++) store_vector<T>(Vector<T>{} + T(i == j), b(i, j));
  }

  static Vector<T> absolute(Vector<T> v) { return v < 0 ? -v : v; }

  // Row numbers are numbers of T, which are exact.
  Vector<T> find_pivots(int64_t k) const {
    Vector<T> best = absolute(load_vector(a(k, k))), at = Vector<T>{} + T(k);
    if (!own_.pivot) return at;
    for (int64_t i = k + 1; i < own_.rows; i++) {
      const Vector<T> size = absolute(load_vector(a(i, k)));
      const auto is_larger = size > best;
      best = is_larger ? size : best;
      at = is_larger ? Vector<T>{} + T(i) : at;
    }
    return at;
  }

  void swap_rows(int64_t k, const Vector<T> &pivots) {
    for (int64_t lane = 0; lane < lanes<T>; lane++) {
      const int64_t pivot = static_cast<int64_t>(pivots[lane]);
      if (own_.pivots && lane < own_.count)
        own_.pivots[lane * std::min(own_.rows, own_.columns) + k] = static_cast<int32_t>(pivot + 1);
      if (pivot == k) continue;
      for (int64_t c = 0; c < own_.columns; c++) std::swap(a(k, c)[lane], a(pivot, c)[lane]);
      for (int64_t c = 0; c < own_.right; c++) std::swap(b(k, c)[lane], b(pivot, c)[lane]);
    }
  }

  void eliminate(int64_t k, Vector<T> &failed) {
    swap_rows(k, find_pivots(k));
    const Vector<T> diagonal = load_vector(a(k, k));
    const auto fails = (diagonal == 0) & (failed == 0);
    failed = fails ? Vector<T>{} + T(k + 1) : failed;
    const Vector<T> divisor = own_.pivot ? (diagonal == 0 ? Vector<T>{} + T(1) : diagonal) : diagonal;
    for (int64_t i = k + 1; i < own_.rows; i++) {
      const Vector<T> factor = load_vector(a(i, k)) / divisor;
      store_vector<T>(factor, a(i, k));
      subtract(a(i, k + 1), a(k, k + 1), factor, own_.columns - k - 1);
      subtract(b(i, 0), b(k, 0), factor, own_.right);
    }
  }

  void substitute_back(int64_t i) {
    for (int64_t k = i + 1; k < own_.rows; k++) subtract(b(i, 0), b(k, 0), load_vector(a(i, k)), own_.right);
    const Vector<T> diagonal = load_vector(a(i, i));
    for (int64_t c = 0; c < own_.right; c++) store_vector<T>(load_vector(b(i, c)) / diagonal, b(i, c));
  }

  static void subtract(T *__restrict y, const T *__restrict x, Vector<T> factor, int64_t count) {
    const Vector<T> minus = -factor;
    for (int64_t c = 0; c < count * lanes<T>; c += lanes<T>)
      store_vector<T>(multiply_add<T>(load_vector(x + c), minus, load_vector(y + c)), y + c);
  }

  const LuLanes<T> &own_;
  T *a_, *b_;
};

template <class T> void factorise_lanes(const LuLanes<T> &own) { Lanes<T>(own).run(); }

template <class T> constexpr LuKernel<T> kernel = {lanes<T>, eliminate<T>, substitute<T>, factorise_lanes<T>};

} // namespace

extern const LuKernels lu_kernels = {kernel<double>, kernel<float>};

} // namespace orchard::ORCHARD_ISA
