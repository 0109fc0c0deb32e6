#include "lu.h"

#include "lu_elimination.h"
#include "vectors.h"

#include <algorithm>
#include <cmath>

namespace orchard::ORCHARD_ISA {
namespace {

// Substitutes columns that do not fill a vector.
template <class T> void substitute_columns(const Substitution<T> &system, T *b, int64_t columns) {
  const auto [a, row_stride, column_stride, whole, n, all, stride, upper, unit_diagonal] = system;
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

// `solved_rows` rows are solved at once, two vectors of columns of each in registers.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int solved_rows = 8;
#else
constexpr int solved_rows = 4;
#endif

// Solves rows of X from `row` on: subtracts the products of the previous rows, then the products of these rows with one
// another.
template <class T, int rows, int vectors> inline void solve_rows(const Substitution<T> &system, T *b, int64_t row) {
  const T *a = system.a + row * system.row_stride;
  T *to = b + row * system.stride;
  Vector<T> x[rows][vectors];
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) x[r][v] = load_vector(to + r * system.stride + v * lanes<T>);
  for (int64_t k = 0; k < row; k++) {
    Vector<T> known[vectors];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) known[v] = load_vector(b + k * system.stride + v * lanes<T>);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
      for (int v = 0; v < vectors; v++)
        x[r][v] = minus_product<T>(x[r][v], a[r * system.row_stride + k * system.column_stride], known[v]);
  }
  a += row * system.column_stride;
#pragma GCC unroll 8
  for (int k = 0; k < rows; k++)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) {
      if (!system.unit_diagonal) x[k][v] = x[k][v] / a[k * (system.row_stride + system.column_stride)];
      store_vector<T>(x[k][v], to + k * system.stride + v * lanes<T>);
#pragma GCC unroll 8
      for (int r = k + 1; r < rows; r++)
        x[r][v] = minus_product<T>(x[r][v], a[r * system.row_stride + k * system.column_stride], x[k][v]);
    }
}

template <class T, int vectors> void substitute_block(const Substitution<T> &system, T *b) {
  int64_t row = 0;
  for (; row + solved_rows <= system.n; row += solved_rows) solve_rows<T, solved_rows, vectors>(system, b, row);
  for (; row < system.n; row++) solve_rows<T, 1, vectors>(system, b, row);
}

// Turns an upper triangle into a lower one by counting its rows and columns from the end.
template <class T> Substitution<T> as_lower(const Substitution<T> &system) {
  if (!system.upper) return system;
  const int64_t last = system.n - 1;
  return {system.a + last * (system.row_stride + system.column_stride),
          -system.row_stride,
          -system.column_stride,
          system.b + last * system.stride,
          system.n,
          system.columns,
          -system.stride,
          false,
          system.unit_diagonal};
}

template <class T> void substitute_rows(const Substitution<T> &system) {
  if (system.n == 0) return;
  const Substitution<T> lower = as_lower(system);
  int64_t column = 0;
  for (; column + 2 * lanes<T> <= system.columns; column += 2 * lanes<T>)
    substitute_block<T, 2>(lower, lower.b + column);
  for (; column + lanes<T> <= system.columns; column += lanes<T>) substitute_block<T, 1>(lower, lower.b + column);
  if (column < system.columns) substitute_columns(system, system.b + column, system.columns - column);
}

// Substitutes a single column with contiguous elements. If the rows of T are contiguous, sums along them; otherwise
// subtracts each known element's multiples from the unknown ones.
template <class T> void substitute_vector(const Substitution<T> &system) {
  const auto [a, row_stride, column_stride, b, n, columns, stride, upper, unit_diagonal] = system;
  for (int64_t step = 0; step < n; step++) {
    int64_t i = upper ? n - 1 - step : step, others = upper ? i + 1 : 0;
    if (column_stride == 1) b[i] -= dot(a + i * row_stride + others, b + others, step);
    if (!unit_diagonal) b[i] /= a[i * (row_stride + column_stride)];
    if (column_stride == 1) continue;
    int64_t next = upper ? 0 : i + 1;
    subtract_multiple(b + next, a + i * column_stride + next, b[i], n - 1 - step);
  }
}

template <class T> void substitute(const Substitution<T> &system) {
  bool is_vector = system.columns == 1 && system.stride == 1 && (system.column_stride == 1 || system.row_stride == 1);
  return is_vector ? substitute_vector(system) : substitute_rows(system);
}

// Writes element e of matrix l to to[e * lanes + l]. Unused lanes repeat the last matrix.
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

// Small matrices, one per vector lane.
template <class T> class Lanes {
public:
  explicit Lanes(const LuLanes<T> &group)
      : group_(group), a_(group.work), b_(group.work + group.rows * group.columns * lanes<T>) {}

  void run() {
    const auto &[count, rows, columns, right, pivot, a, b, lu, x, pivots, info, work] = group_;
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
  T *a(int64_t i, int64_t j) const { return a_ + (i * group_.columns + j) * lanes<T>; }
  T *b(int64_t i, int64_t j) const { return b_ + (i * group_.right + j) * lanes<T>; }

  void set_identity() {
    for (int64_t i = 0; i < group_.rows; i++)
      for (int64_t j = 0; j < group_.right; j++) store_vector<T>(Vector<T>{} + T(i == j), b(i, j));
  }

  static Vector<T> absolute(Vector<T> v) { return v < 0 ? -v : v; }

  // Row numbers are stored as T, which represents them exactly.
  Vector<T> find_pivots(int64_t k) const {
    Vector<T> best = absolute(load_vector(a(k, k))), at = Vector<T>{} + T(k);
    if (!group_.pivot) return at;
    for (int64_t i = k + 1; i < group_.rows; i++) {
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
      if (group_.pivots && lane < group_.count)
        group_.pivots[lane * std::min(group_.rows, group_.columns) + k] = static_cast<int32_t>(pivot + 1);
      if (pivot == k) continue;
      for (int64_t c = 0; c < group_.columns; c++) std::swap(a(k, c)[lane], a(pivot, c)[lane]);
      for (int64_t c = 0; c < group_.right; c++) std::swap(b(k, c)[lane], b(pivot, c)[lane]);
    }
  }

  void eliminate(int64_t k, Vector<T> &failed) {
    swap_rows(k, find_pivots(k));
    const Vector<T> diagonal = load_vector(a(k, k));
    const auto fails = (diagonal == 0) & (failed == 0);
    failed = fails ? Vector<T>{} + T(k + 1) : failed;
    const Vector<T> divisor = group_.pivot ? (diagonal == 0 ? Vector<T>{} + T(1) : diagonal) : diagonal;
    for (int64_t i = k + 1; i < group_.rows; i++) {
      const Vector<T> factor = load_vector(a(i, k)) / divisor;
      store_vector<T>(factor, a(i, k));
      subtract(a(i, k + 1), a(k, k + 1), factor, group_.columns - k - 1);
      subtract(b(i, 0), b(k, 0), factor, group_.right);
    }
  }

  void substitute_back(int64_t i) {
    for (int64_t k = i + 1; k < group_.rows; k++) subtract(b(i, 0), b(k, 0), load_vector(a(i, k)), group_.right);
    const Vector<T> diagonal = load_vector(a(i, i));
    for (int64_t c = 0; c < group_.right; c++) store_vector<T>(load_vector(b(i, c)) / diagonal, b(i, c));
  }

  static void subtract(T *__restrict y, const T *__restrict x, Vector<T> factor, int64_t count) {
    const Vector<T> minus = -factor;
    for (int64_t c = 0; c < count * lanes<T>; c += lanes<T>)
      store_vector<T>(multiply_add<T>(load_vector(x + c), minus, load_vector(y + c)), y + c);
  }

  const LuLanes<T> &group_;
  T *a_, *b_;
};

template <class T> void factorize_lanes(const LuLanes<T> &group) { Lanes<T>(group).run(); }

template <class T> constexpr LuKernel<T> kernel = {lanes<T>, eliminate<T>, substitute<T>, factorize_lanes<T>};

} // namespace

extern const LuKernels lu_kernels = {kernel<double>, kernel<float>};

} // namespace orchard::ORCHARD_ISA
