#include "qr.h"

#include "tall_qr.h"

using namespace orchard;

namespace {

// Returns the number of multiplications and additions in a factorization.
int64_t factor_operations(int64_t rows, int64_t columns) { return 2 * rows * columns * std::min(rows, columns); }

template <class T> void negate(T *x, int64_t count) {
  for (int64_t i = 0; i < count; i++) x[i] = 0 - x[i];
}

// Negates the rows of R whose diagonal element is negative, and the corresponding columns of Q.
template <class T> void make_diagonal_positive(const Part<T> &q, const Part<T> &r, T *signs) {
  const int64_t count = std::min(r.rows, r.columns);
  bool is_changed = false;
  for (int64_t i = 0; i < count; i++) {
    signs[i] = r.data[i * r.stride + i] < 0 ? T(-1) : T(1);
    if (signs[i] > 0) continue;
    is_changed = true;
    negate(r.data + i * r.stride + i, r.columns - i);
  }
  if (!is_changed || q.columns == 0) return;
  for (int64_t row = 0; row < q.rows; row++)
    for (int64_t column = 0; column < count; column++)
      q.data[row * q.stride + column] =
          signs[column] < 0 ? 0 - q.data[row * q.stride + column] : q.data[row * q.stride + column];
}

template <class T> void clear_below_diagonal(const Part<T> &r) {
  for (int64_t row = 1; row < r.rows; row++) std::fill_n(r.data + row * r.stride, std::min(row, r.columns), T(0));
}

template <class T> void copy(const Part<const T> &from, const Part<T> &to) {
  for (int64_t row = 0; row < to.rows; row++)
    std::copy_n(from.data + row * from.stride, to.columns, to.data + row * to.stride);
}

// Returns whether matrices are computed one per vector lane: small ones, if there are enough to fill part of a vector.
template <class T> bool is_for_lanes(int64_t batch, int64_t rows, int64_t columns) {
  const bool fills = batch * tuning::qr::least_part_of_lanes >= qr_lanes_kernels().of<T>().lanes;
  return rows * columns <= tuning::qr::most_lane_elements<T> && fills;
}

// Factors A in the memory of R or Q, if it fits there, else in scratch memory.
template <class T>
void factorize(BlockedQr<T> &qr, const Part<const T> &a, const Part<T> &q, const Part<T> &r, T *scratch) {
  const int64_t count = std::min(a.rows, a.columns);
  T *tau = scratch, *signs = tau + count;
  const bool fits_r = r.rows == a.rows, fits_q = q.columns == a.columns;
  const Part<T> factors{fits_r ? r.data : fits_q ? q.data : signs + count, a.rows, a.columns, a.columns};
  copy(a, factors);
  qr.factor(factors, tau);
  if (!fits_r) copy<T>({factors.data, r.rows, r.columns, factors.stride}, r);
  if (q.columns > 0) qr.form(factors, tau, count, q);
  clear_below_diagonal(r);
  make_diagonal_positive(q, r, signs);
}

// Factors a matrix A with many more rows than columns. Q has as many columns as A, or none.
template <class T> void factorize_tall(const T *a, int64_t rows, int64_t columns, T *q, T *r) {
  TallQr<T> qr(rows, columns);
  Scratch<T> vectors(q ? 0 : rows * columns), signs(columns), diagonal(columns * columns);
  T *reflectors = q ? q : vectors.data();
  qr.factor(a, reflectors);
  qr.copy_r(r);
  make_diagonal_positive<T>({nullptr, 0, 0, 0}, {r, columns, columns, columns}, signs.data());
  if (!q) return;
  std::fill_n(diagonal.data(), columns * columns, T(0));
  for (int64_t i = 0; i < columns; i++) diagonal.data()[i * columns + i] = signs.data()[i];
  qr.expand(q, diagonal.data(), columns, q);
}

void qr(const QrBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const int64_t batch = block.batch, rows = block.rows, columns = block.columns, width = block.width;
  with_real(dtype, [&](auto real) {
    using T = decltype(real);
    const int64_t count = std::min(rows, columns), inner = width > 0 ? width : count;
    if (width != 0 && width != count && width != rows)
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected no columns of Q, all of them, or as many as the smaller size");
    const T *a = operands.inputs<T>(0, 0, matrices(batch, rows, columns));
    const Extent all_q = matrices(batch, rows, width), all_r = matrices(batch, inner, columns);
    T *q = operands.results<T>(1, 0, all_q);
    T *r = operands.results<T>(2, 0, all_r);
    if (all_q.is_empty() && all_r.is_empty()) return;
    const auto &lanes = qr_lanes_kernels().of<T>();
    if (width <= columns && is_for_lanes<T>(batch, rows, columns))
      return for_each_group<T>(batch, lanes.lanes, lanes.lanes * rows * columns * count,
                               qr_lanes_work(rows, columns, width, inner),
                               [&](int64_t first, int64_t matrices, T *scratch) {
                                 lanes.qr({{a + first * rows * columns, rows * columns, matrices},
                                           {q + first * rows * width, rows * width, matrices},
                                           {r + first * inner * columns, inner * columns, matrices},
                                           rows,
                                           columns,
                                           width},
                                          scratch);
                               });
    if (width <= columns && TallQr<T>::is_for(rows, columns)) {
      for (int64_t at = 0; at < batch; at++)
        factorize_tall(a + at * rows * columns, rows, columns, width > 0 ? q + at * rows * width : nullptr,
                       r + at * inner * columns);
      return;
    }
    const int64_t room = inner == rows || width == columns ? 0 : rows * columns;
    const int64_t operations = factor_operations(rows, columns) + 2 * rows * width * count;
    for_each_qr<T>(batch, rows, count, operations, 2 * count + room,
                   [&](int64_t at, BlockedQr<T> &blocked, T *scratch) {
                     factorize<T>(blocked, {a + at * rows * columns, rows, columns, columns},
                                  {q + at * rows * width, rows, width, width},
                                  {r + at * inner * columns, inner, columns, columns}, scratch);
                   });
  });
}

void geqrf(const GeqrfBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const int64_t batch = block.batch, rows = block.rows, columns = block.columns;
  with_real(dtype, [&](auto real) {
    using T = decltype(real);
    const int64_t count = std::min(rows, columns);
    const Extent all = matrices(batch, rows, columns);
    const T *a = operands.inputs<T>(0, 0, all);
    T *factors = operands.results<T>(1, 0, all);
    T *tau = operands.results<T>(2, 0, Extent(count).along(batch, count));
    if (all.is_empty()) return;
    const auto &lanes = qr_lanes_kernels().of<T>();
    if (is_for_lanes<T>(batch, rows, columns))
      return for_each_group<T>(batch, lanes.lanes, lanes.lanes * rows * columns * count,
                               qr_lanes_work(rows, columns, 0, 0), [&](int64_t first, int64_t matrices, T *scratch) {
                                 lanes.geqrf({{a + first * rows * columns, rows * columns, matrices},
                                              {factors + first * rows * columns, rows * columns, matrices},
                                              {tau + first * count, count, matrices},
                                              rows,
                                              columns},
                                             scratch);
                               });
    for_each_qr<T>(batch, rows, count, factor_operations(rows, columns), 0,
                   [&](int64_t at, BlockedQr<T> &blocked, T *) {
                     const Part<T> result{factors + at * rows * columns, rows, columns, columns};
                     copy({a + at * rows * columns, rows, columns, columns}, result);
                     blocked.factor(result, tau + at * count);
                   });
  });
}

// The vectors and tau of reflections, read from two operands.
template <class T> struct Reflections {
  int64_t rows, columns, count;
  const T *a, *tau;

  template <class Fields>
  Reflections(const Fields &block, Operands operands)
      : rows(block.rows), columns(block.columns), count(block.reflectors) {
    const int64_t batch = block.batch;
    if (count < 0 || count > std::min(rows, columns))
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected at most as many reflections as rows and columns");
    a = operands.inputs<T>(0, 0, matrices(batch, rows, columns));
    tau = operands.inputs<T>(1, 0, Extent(count).along(batch, count));
  }

  // Returns a mutable Part, but the vectors are only read.
  Part<T> vectors_of(int64_t matrix) const {
    return {const_cast<T *>(a) + matrix * rows * columns, rows, columns, columns};
  }
};

void householder_product(const HouseholderProductBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const int64_t batch = block.batch, rows = block.rows, width = block.width;
  with_real(dtype, [&](auto real) {
    using T = decltype(real);
    const Reflections<T> reflections(block, operands);
    const Extent all = matrices(batch, rows, width);
    T *q = operands.results<T>(2, 0, all);
    if (all.is_empty()) return;
    const int64_t operations = 2 * rows * width * reflections.count;
    for_each_qr<T>(batch, rows, reflections.count, operations, 0, [&](int64_t at, BlockedQr<T> &qr, T *) {
      qr.form(reflections.vectors_of(at), reflections.tau + at * reflections.count, reflections.count,
              {q + at * rows * width, rows, width, width});
    });
  });
}

void ormqr(const OrmqrBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const int64_t batch = block.batch, rows = block.rows, width = block.width;
  with_real(dtype, [&](auto real) {
    using T = decltype(real);
    const Reflections<T> reflections(block, operands);
    const Extent all = matrices(batch, rows, width);
    const T *c = operands.inputs<T>(2, 0, all);
    T *product = operands.results<T>(3, 0, all);
    if (all.is_empty()) return;
    const int64_t operations = 4 * rows * width * reflections.count;
    for_each_qr<T>(batch, rows, reflections.count, operations, 0, [&](int64_t at, BlockedQr<T> &qr, T *) {
      const Part<T> result{product + at * rows * width, rows, width, width};
      copy({c + at * rows * width, rows, width, width}, result);
      qr.multiply(reflections.vectors_of(at), reflections.tau + at * reflections.count, reflections.count, result,
                  block.transpose);
    });
  });
}

ORCHARD_FUNCTION("qr", qr, QrBlock, 3)
ORCHARD_FUNCTION("geqrf", geqrf, GeqrfBlock, 3)
ORCHARD_FUNCTION("householderProduct", householder_product, HouseholderProductBlock, 3)
ORCHARD_FUNCTION("ormqr", ormqr, OrmqrBlock, 4)

} // namespace
