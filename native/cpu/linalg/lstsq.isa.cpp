#include "lstsq.h"

#include "reflection.h"

#include <numeric>

namespace orchard::ORCHARD_ISA {
namespace {

template <class T> struct RowMajor {
  T *data;
  int64_t rows, columns;
  T &operator()(int64_t row, int64_t column) const { return data[row * columns + column]; }
  T *row(int64_t at) const { return data + at * columns; }
};

// C = (I - tau v vᵀ) C for the rows from `row` and the columns from `column` on; `sums` has room for a row.
template <class T> void reflect_rows(const RowMajor<T> &c, int64_t row, int64_t column, const T *v, T tau, T *sums) {
  const int64_t width = c.columns - column;
  std::fill_n(sums, width, T(0));
  for (int64_t i = row; i < c.rows; i++) subtract_multiple(sums, c.row(i) + column, -v[i - row], width);
  for (int64_t i = row; i < c.rows; i++) subtract_multiple(c.row(i) + column, sums, tau * v[i - row], width);
}

// Computes the reflection (v and tau) that maps column `column` to a multiple of a unit vector in row `row`, and
// applies it to the columns after it. Elements below the diagonal keep their values.
template <class T> void eliminate(const RowMajor<T> &a, int64_t row, int64_t column, T *v, T *tau, T *sums) {
  for (int64_t i = row; i < a.rows; i++) v[i - row] = a(i, column);
  const T beta = reflect(v, a.rows - row, tau);
  if (*tau != 0) reflect_rows(a, row, column + 1, v, *tau, sums);
  a(row, column) = beta;
}

// Returns the norm of a column from `row` on, computed without overflow.
template <class T> T length_of(const RowMajor<T> &a, int64_t row, int64_t column) {
  T largest = 0, square = 0;
  for (int64_t i = row; i < a.rows; i++) largest = std::max(largest, std::abs(a(i, column)));
  if (!(largest > 0)) return largest;
  for (int64_t i = row; i < a.rows; i++) square += (a(i, column) / largest) * (a(i, column) / largest);
  return largest * std::sqrt(square);
}

// The norms of the remaining parts of columns, which shrink as rows are eliminated. A norm that has lost its digits to
// cancellation is recomputed. Source: Z. Drmač and Z. Bujanović, "On the failure of rank-revealing QR factorization
// software", 2008.
template <class T> class ColumnLengths {
public:
  ColumnLengths(const RowMajor<T> &a, T *memory) : a_(a), now_(memory), sure_(memory + a.columns) {
    for (int64_t j = 0; j < a.columns; j++) now_[j] = sure_[j] = length_of(a, 0, j);
  }

  int64_t longest(int64_t first) const { return std::max_element(now_ + first, now_ + a_.columns) - now_; }
  void move(int64_t from, int64_t to) { now_[to] = now_[from], sure_[to] = sure_[from]; }

  // Updates the norms of the columns from `column` on after the elimination of row `row`.
  void take_away(int64_t row, int64_t column) {
    const T enough = std::sqrt(std::numeric_limits<T>::epsilon());
    for (int64_t j = column; j < a_.columns; j++) {
      if (now_[j] == 0) continue;
      const T part = std::abs(a_(row, j)) / now_[j], left = std::max(T(0), (1 - part) * (1 + part));
      const T ratio = now_[j] / sure_[j];
      if (left * ratio * ratio <= enough) now_[j] = sure_[j] = length_of(a_, row + 1, j);
      else now_[j] *= std::sqrt(left);
    }
  }

private:
  const RowMajor<T> &a_;
  T *now_, *sure_;
};

// Computes A P = Q R and Qᵀ B, column by column; the column with the largest norm comes first.
template <class T>
void factor_pivoted(const RowMajor<T> &a, const RowMajor<T> &b, int32_t *order, T *v, T *sums, T *lengths) {
  ColumnLengths<T> left(a, lengths);
  std::iota(order, order + a.columns, 0);
  for (int64_t k = 0; k < std::min(a.rows, a.columns); k++) {
    const int64_t pivot = left.longest(k);
    if (pivot != k) {
      for (int64_t i = 0; i < a.rows; i++) std::swap(a(i, k), a(i, pivot));
      std::swap(order[k], order[pivot]);
      left.move(k, pivot);
    }
    T tau;
    eliminate(a, k, k, v, &tau, sums);
    if (tau != 0) reflect_rows(b, k, 0, v, tau, sums);
    left.take_away(k, k + 1);
  }
}

// Estimates the largest or smallest singular value of a triangular matrix as columns are added, from [σ 0; α γ], where
// σ is the previous value with left vector x, and α = xᵀ v for the new column [v; γ]. Source: C. Bischof, "Incremental
// condition estimation", 1990; the rotation is Jacobi's.
template <class T> class SingularValue {
public:
  SingularValue(T *x, T first, bool is_largest) : value(std::abs(first)), x_(x), is_largest_(is_largest) { x[0] = 1; }

  T value;

  // Returns the value with another column, which `accept` makes permanent.
  T with(const RowMajor<T> &a, int64_t column) {
    T alpha = 0, gamma = a(column, column);
    for (int64_t i = 0; i < column; i++) alpha += x_[i] * a(i, column);
    const T scale = std::max({value, std::abs(alpha), std::abs(gamma)});
    if (!(scale > 0)) {
      sine_ = 0, cosine_ = 1;
      return next_ = 0;
    }
    const T sigma = value / scale;
    alpha /= scale, gamma /= scale;
    // The direction of the larger vector; the other one is orthogonal to it.
    const T angle = std::atan2(2 * alpha * gamma, sigma * sigma + alpha * alpha - gamma * gamma) / 2;
    const T sine = std::cos(angle), cosine = std::sin(angle);
    const T largest = std::hypot(sigma * sine, alpha * sine + gamma * cosine);
    sine_ = is_largest_ ? sine : -cosine;
    cosine_ = is_largest_ ? cosine : sine;
    return next_ = scale * (is_largest_ ? largest : sigma * std::abs(gamma) / largest);
  }

  void accept(int64_t column) {
    for (int64_t i = 0; i < column; i++) x_[i] *= sine_;
    x_[column] = cosine_;
    value = next_;
  }

private:
  T *x_;
  bool is_largest_;
  T sine_ = 0, cosine_ = 0, next_ = 0;
};

template <class T> int64_t rank_of(const RowMajor<T> &r, double rcond, T *work) {
  const int64_t count = std::min(r.rows, r.columns);
  if (count == 0 || r(0, 0) == 0) return 0;
  SingularValue<T> largest(work, r(0, 0), true), smallest(work + count, r(0, 0), false);
  for (int64_t k = 1; k < count; k++) {
    const T high = largest.with(r, k), low = smallest.with(r, k);
    if (!(double(high) * rcond <= double(low))) return k;
    largest.accept(k);
    smallest.accept(k);
  }
  return count;
}

// Returns the first diagonal element that is zero, counted from 1, or 0.
template <class T> int64_t zero_of(const RowMajor<T> &r, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (r(i, i) == 0) return i + 1;
  return 0;
}

// Replaces the first rows of B by X of R X = B, with R the upper triangle of a matrix.
template <class T> void solve_upper(const RowMajor<T> &r, int64_t size, const RowMajor<T> &b) {
  for (int64_t i = size; i-- > 0;) {
    for (int64_t k = i + 1; k < size; k++) subtract_multiple(b.row(i), b.row(k), r(i, k), b.columns);
    for (int64_t j = 0; j < b.columns; j++) b(i, j) /= r(i, i);
  }
}

// Replaces the first rows of B by X of Rᵀ X = B.
template <class T> void solve_transposed(const RowMajor<T> &r, int64_t size, const RowMajor<T> &b) {
  for (int64_t i = 0; i < size; i++) {
    for (int64_t k = 0; k < i; k++) subtract_multiple(b.row(i), b.row(k), r(k, i), b.columns);
    for (int64_t j = 0; j < b.columns; j++) b(i, j) /= r(i, i);
  }
}

template <class T> class Solver {
public:
  Solver(const LeastSquaresSystem<T> &system, T *work)
      : a_{system.a, system.rows, system.columns}, b_{system.b, system.rows, system.width},
        x_{system.x, system.columns, system.width}, system_(system), wide_(work), v_(wide_ + a_.rows * a_.columns),
        sums_(v_ + a_.columns), lengths_(sums_ + a_.columns + system.width), tau_(lengths_ + 2 * a_.columns),
        vectors_(tau_ + a_.rows), order_(reinterpret_cast<int32_t *>(vectors_ + 2 * a_.rows)) {}

  Rank solve() {
    std::fill_n(x_.data, x_.rows * x_.columns, T(0));
    if (!system_.is_pivoted) return solve_full();
    factor_pivoted(a_, b_, order_, v_, sums_, lengths_);
    const int64_t rank = rank_of(a_, system_.rcond, vectors_);
    if (rank < a_.columns) solve_by_rows(rank, true);
    else solve_upper(a_, rank, b_);
    if (rank == a_.columns) copy_solution(rank);
    reorder();
    return {rank, 0};
  }

private:
  // Solves a system of full rank: R is given, or the rows are linearly independent.
  Rank solve_full() {
    if (!system_.is_upper) return {a_.rows, solve_by_rows(a_.rows, false)};
    const int64_t zero = zero_of(a_, a_.rows);
    if (zero == 0) solve_upper(a_, a_.rows, b_);
    if (zero == 0) copy_solution(a_.rows);
    return {a_.rows, zero};
  }

  void copy_solution(int64_t rows) { std::copy_n(b_.data, rows * b_.columns, x_.data); }

  // Computes the minimum-norm solution from the first rows of A; if A is upper triangular, row i begins at column i.
  // With Aᵀ = Z S it is Z [S⁻ᵀ B; 0].
  int64_t solve_by_rows(int64_t rows, bool is_upper) {
    if (rows == 0) return 0;
    const RowMajor<T> wide{wide_, a_.columns, rows};
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < a_.columns; j++) wide(j, i) = is_upper && j < i ? 0 : a_(i, j);
    for (int64_t k = 0; k < rows; k++) {
      eliminate(wide, k, k, v_, &tau_[k], sums_);
      for (int64_t i = k + 1; i < wide.rows; i++) wide(i, k) = v_[i - k];
    }
    if (!is_upper)
      if (const int64_t zero = zero_of(wide, rows)) return zero;
    copy_solution(rows);
    solve_transposed(wide, rows, x_);
    for (int64_t k = rows; k-- > 0;) {
      if (tau_[k] == 0) continue;
      v_[0] = 1;
      for (int64_t i = k + 1; i < wide.rows; i++) v_[i - k] = wide(i, k);
      reflect_rows(x_, k, 0, v_, tau_[k], sums_);
    }
    return 0;
  }

  // Undoes the pivoting: row i of the solution belongs to column order[i].
  void reorder() {
    for (int32_t at = 0; at < a_.columns; at++)
      while (order_[at] != at) {
        const int32_t other = order_[at];
        std::swap_ranges(x_.row(at), x_.row(at) + x_.columns, x_.row(other));
        std::swap(order_[at], order_[other]);
      }
  }

  RowMajor<T> a_, b_, x_;
  const LeastSquaresSystem<T> &system_;
  T *wide_, *v_, *sums_, *lengths_, *tau_, *vectors_;
  int32_t *order_;
};

template <class T> Rank solve(const LeastSquaresSystem<T> &system, T *work) { return Solver<T>(system, work).solve(); }

} // namespace

extern const LstsqKernels lstsq_kernels = {{solve<double>}, {solve<float>}};

} // namespace orchard::ORCHARD_ISA
