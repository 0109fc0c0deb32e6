#include "lstsq.h"

#include "lu.h"
#include "tall_qr.h"

using namespace orchard;

namespace {

// The columns of the inverse of a triangle that are computed at a time: several whole vectors.
constexpr int64_t inverse_columns = 32;

// Replaces `inverse` by the inverse of an upper triangle of n rows, some columns at a time: row i of column j is 0 for
// i > j.
template <class T> void invert_upper(const T *r, int64_t n, T *inverse) {
  std::fill_n(inverse, n * n, T(0));
  for (int64_t i = 0; i < n; i++) inverse[i * n + i] = 1;
  for (int64_t first = 0; first < n; first += inverse_columns) {
    const int64_t columns = std::min(inverse_columns, n - first);
    lu_kernels().of<T>().substitute({r, n, 1, inverse + first, first + columns, columns, n, true, false});
  }
}

template <class T> double square_sum(const T *x, int64_t count) {
  constexpr int lanes = 8;
  double sums[lanes] = {}, total = 0;
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int lane = 0; lane < lanes; lane++) sums[lane] += double(x[i + lane]) * double(x[i + lane]);
  for (; i < count; i++) total += double(x[i]) * double(x[i]);
  for (double sum : sums) total += sum;
  return total;
}

// Returns whether the condition number of an upper triangle, which is at most the product of the Frobenius norms of R
// and R⁻¹, is below 1 / rcond. Then pivoting would find full rank too: the estimates of the singular values that it
// compares (lstsq.isa.cpp) are between the smallest and the largest one. Sums that overflow or underflow give false.
template <class T> bool has_full_rank(const T *r, int64_t n, double rcond, T *inverse) {
  invert_upper(r, n, inverse);
  return std::sqrt(square_sum(r, n * n)) * std::sqrt(square_sum(inverse, n * n)) * rcond < 1;
}

// One system, and scratch memory for copies of A and B.
template <class T> struct Problem {
  int64_t rows, columns, width;
  bool is_pivoted;
  double rcond;

  int64_t count() const { return std::min(rows, columns); }
  int64_t scratch() const {
    return scratch_product({rows, columns}) + scratch_product({rows, width}) + count() +
           lstsq_work(count(), columns, width);
  }

  // Solves a system. If it has more rows than columns, it is first reduced to R and Qᵀ B by blocks of reflections.
  Rank solve(BlockedQr<T> &qr, const T *a, const T *b, T *x, T *scratch) const {
    T *a_copy = scratch, *b_copy = a_copy + rows * columns, *tau = b_copy + rows * width;
    std::copy_n(a, rows * columns, a_copy);
    std::copy_n(b, rows * width, b_copy);
    const bool is_tall = rows >= columns;
    if (is_tall) {
      const Part<T> factors{a_copy, rows, columns, columns};
      qr.factor(factors, tau);
      qr.multiply(factors, tau, columns, {b_copy, rows, width, width}, true);
      for (int64_t row = 1; row < columns; row++) std::fill_n(a_copy + row * columns, row, T(0));
    }
    return solve_square(a_copy, b_copy, x, is_tall, tau + count());
  }

  // Solves a system by a QR factorization in blocks of rows.
  Rank solve_tall(const T *a, const T *b, T *x) const {
    Scratch<T> scratch(this->scratch());
    T *a_copy = scratch.data(), *b_copy = a_copy + rows * columns;
    std::copy_n(b, rows * width, b_copy);
    TallQr<T> qr(rows, columns);
    qr.factor(a, a_copy);
    qr.project(a_copy, b_copy, width);
    qr.copy_r(a_copy);
    return solve_square(a_copy, b_copy, x, true, b_copy + rows * width + count());
  }

private:
  Rank solve_square(T *a, T *b, T *x, bool is_triangle, T *work) const {
    if (is_triangle && is_pivoted && has_full_rank(a, columns, rcond, work)) {
      std::copy_n(b, columns * width, x);
      lu_kernels().of<T>().substitute({a, columns, 1, x, columns, width, width, true, false});
      return {columns, 0};
    }
    return lstsq_kernels().of<T>().solve({a, b, x, count(), columns, width, is_triangle, is_pivoted, rcond}, work);
  }
};

void lstsq(const LstsqBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const int64_t batch = block.batch, rows = block.rows, columns = block.columns, width = block.width;
  with_real(dtype, [&](auto real) {
    using T = decltype(real);
    const Problem<T> problem{rows, columns, width, block.is_pivoted, block.rcond};
    const Extent all_x = matrices(batch, columns, width), one_each = Extent(batch);
    const T *a = operands.inputs<T>(0, 0, matrices(batch, rows, columns));
    const T *b = operands.inputs<T>(1, 0, matrices(batch, rows, width));
    T *x = operands.results<T>(2, 0, all_x);
    int32_t *rank = operands.results<int32_t>(3, 0, one_each), *info = operands.results<int32_t>(4, 0, one_each);
    if (one_each.is_empty()) return;
    const int64_t count = problem.count(), operations = 2 * rows * columns * (count + width);
    const auto keep = [&](int64_t at, const Rank &found) {
      rank[at] = static_cast<int32_t>(found.rank);
      info[at] = static_cast<int32_t>(found.zero);
    };
    if (TallQr<T>::is_for(rows, columns)) {
      for (int64_t at = 0; at < batch; at++)
        keep(at, problem.solve_tall(a + at * rows * columns, b + at * rows * width, x + at * columns * width));
      return;
    }
    for_each_qr<T>(batch, rows, count, operations, problem.scratch(), [&](int64_t at, BlockedQr<T> &qr, T *scratch) {
      keep(at, problem.solve(qr, a + at * rows * columns, b + at * rows * width, x + at * columns * width, scratch));
    });
  });
}

ORCHARD_FUNCTION("lstsq", lstsq, LstsqBlock, 5)

} // namespace
