#include "lu.h"

#include "../matmul/transpose.h"
#include "vectors.h"

#include <algorithm>
#include <cmath>

namespace orchard::ORCHARD_ISA {
namespace {

template <class T> int64_t largest_in_column(const T *column, int64_t rows, int64_t stride) {
  int64_t best = 0;
  for (int64_t i = 1; i < rows; i++)
    if (std::abs(column[i * stride]) > std::abs(column[best * stride])) best = i;
  return best;
}

// One step of an elimination: rows below the k-th lose their element in column k, which becomes the factor. Whole
// vectors are changed, from the one on that holds column k: in it, what lies before is kept.
template <class T> class Step {
public:
  Step(const T *top, int64_t k, int64_t width, bool divides)
      : top_(top), k_(k), first_(k / lanes<T> * lanes<T>), width_(width), divides_(divides) {
    for (int lane = 0; lane < lanes<T>; lane++) {
      head_[lane] = first_ + lane > k ? top[first_ + lane] : T(0);
      is_factor_[lane] = first_ + lane == k ? -1 : 0;
    }
  }

  void apply(T *row) const {
    const T factor = divides_ ? row[k_] / top_[k_] : row[k_];
    const Vector<T> factors = factor - Vector<T>{}, head = load_vector(row + first_) - factors * head_;
    store_vector<T>(is_factor_ ? factors : head, row + first_);
    for (int64_t c = first_ + lanes<T>; c < width_; c += lanes<T>)
      store_vector<T>(load_vector(row + c) - factors * load_vector(top_ + c), row + c);
  }

private:
  using Mask = decltype(Vector<T>{} > Vector<T>{});
  const T *top_;
  int64_t k_, first_, width_;
  bool divides_;
  Vector<T> head_;
  Mask is_factor_;
};

// The pivot is the first of the largest absolute values; NaN is passed over unless it is the first, as by LAPACK's
// idamax. The next column's is found while rows are changed.
template <class T> int64_t eliminate(const Elimination<T> &own) {
  const auto [a, rows, columns, width, pivots, pivot] = own;
  int64_t info = 0, best = pivot ? largest_in_column(a, rows, width) : 0;
  for (int64_t k = 0; k < std::min(rows, columns); k++) {
    T *top = a + k * width;
    pivots[k] = static_cast<int32_t>(best);
    if (best != k) std::swap_ranges(top, top + width, a + best * width);
    const bool is_zero = top[k] == 0, searches = pivot && k + 1 < columns;
    if (is_zero && info == 0) info = k + 1;
    const Step<T> step(top, k, width, !(is_zero && pivot));
    best = k + 1;
    T largest = 0;
    for (int64_t i = k + 1; i < rows; i++) {
      T *row = a + i * width;
      step.apply(row);
      if (!searches) continue;
      const T size = std::abs(row[k + 1]);
      if (i == k + 1 || size > largest) largest = size, best = i;
    }
  }
  return info;
}

// Row by row: X[i] = (B[i] - Σ T[i, k] X[k] over the rows k that are known) / T[i, i].
template <class T> void substitute_rows(const Substitution<T> &own) {
  const auto [a, row_stride, column_stride, b, n, columns, stride, upper, unit_diagonal] = own;
  for (int64_t step = 0; step < n; step++) {
    int64_t i = upper ? n - 1 - step : step;
    T *row = b + i * stride;
    for (int64_t known = 0; known < step; known++) {
      int64_t k = upper ? n - 1 - known : known;
      subtract_multiple(row, b + k * stride, a[i * row_stride + k * column_stride], columns);
    }
    if (unit_diagonal) continue;
    const T diagonal = a[i * (row_stride + column_stride)];
    for (int64_t column = 0; column < columns; column++) row[column] /= diagonal;
  }
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
    failed = (diagonal == 0) & (failed == 0) ? Vector<T>{} + T(k + 1) : failed;
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
    for (int64_t c = 0; c < count * lanes<T>; c += lanes<T>)
      store_vector<T>(load_vector(y + c) - factor * load_vector(x + c), y + c);
  }

  const LuLanes<T> &own_;
  T *a_, *b_;
};

template <class T> void factorise_lanes(const LuLanes<T> &own) { Lanes<T>(own).run(); }

template <class T> constexpr LuKernel<T> kernel = {lanes<T>, eliminate<T>, substitute<T>, factorise_lanes<T>};

} // namespace

extern const LuKernels lu_kernels = {kernel<double>, kernel<float>};

} // namespace orchard::ORCHARD_ISA
