#include "lstsq.h"

#include "tall_qr.h"

using namespace orchard;

namespace {

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
