// LU factorization of a matrix of any size by recursive halving of its columns: S. Toledo, "Locality of reference in LU
// decomposition with partial pivoting", 1997. Everything outside the panels is a matrix product.
#pragma once

#include "../matmul/product.h"
#include "../memory.h"
#include "../parallel.h"
#include "lu.h"
#include "tuning.h"

namespace orchard {

using namespace tuning::lu_panels;

// The size of a copy of such a panel and of the scratch memory for its elimination, in elements.
constexpr int64_t lu_panel_elements(int64_t rows) { return padded(rows) * (lu_panel_columns + lu_unit); }

// A function that computes products, on all threads or on the calling thread.
using MultiplyMatrices = void (*)(const MatrixProduct &);

template <class T> class BlockedLu {
public:
  // `panel` has lu_panel_elements(rows) elements, for the largest number of rows.
  BlockedLu(MultiplyMatrices multiply, T *panel) : multiply_(multiply), panel_(panel) {}

  // Replaces A by its factors. Pivots are counted from 0. Returns the first pivot that is 0, counted from 1, or 0 if
  // there is none.
  int64_t factorize(T *a, int64_t rows, int64_t columns, int64_t stride, int32_t *pivots, bool pivot) const {
    const int64_t steps = std::min(rows, columns);
    if (steps == 0) return 0;
    const int64_t left = steps <= lu_panel_columns ? steps : half_of(steps), right = columns - left;
    int64_t info = left <= lu_panel_columns ? factorize_panel(a, rows, left, stride, pivots, pivot)
                                            : factorize(a, rows, left, stride, pivots, pivot);
    if (right == 0) return info;
    T *top = a + left;
    swap_rows(top, right, stride, pivots, left);
    substitute({a, stride, 1, top, left, right, stride, false, true});
    if (left == rows) return info;
    T *below = a + left * stride;
    subtract_product(below, stride, 1, top, stride, below + left, stride, rows - left, right, left);
    const int64_t later = factorize(below + left, rows - left, right, stride, pivots + left, pivot);
    swap_rows(below, left, stride, pivots + left, steps - left);
    for (int64_t k = left; k < steps; k++) pivots[k] += static_cast<int32_t>(left);
    if (info == 0 && later != 0) info = left + later;
    return info;
  }

  static void swap_rows(T *a, int64_t columns, int64_t stride, const int32_t *pivots, int64_t count) {
    parallel_for(columns, std::max<int64_t>(64, (1 << 14) / (count + 1)), [&](int64_t begin, int64_t end) {
      for (int64_t k = 0; k < count; k++)
        if (pivots[k] != k)
          std::swap_ranges(a + k * stride + begin, a + k * stride + end, a + pivots[k] * stride + begin);
    });
  }

  void substitute(const Substitution<T> &system) const {
    const int64_t leaf = system.columns == 1 ? 256 : 64;
    if (system.n <= leaf) return substitute_leaf(system);
    const int64_t first = half_of(system.n), second = system.n - first;
    Substitution<T> upper = system, lower = system;
    upper.n = first;
    lower.n = second;
    lower.a = system.a + first * (system.row_stride + system.column_stride);
    lower.b = system.b + first * system.stride;
    substitute(system.upper ? lower : upper);
    const T *corner = system.a + first * (system.upper ? system.column_stride : system.row_stride);
    if (system.upper)
      subtract_product(corner, system.row_stride, system.column_stride, lower.b, system.stride, upper.b, system.stride,
                       first, system.columns, second);
    else
      subtract_product(corner, system.row_stride, system.column_stride, upper.b, system.stride, lower.b, system.stride,
                       second, system.columns, first);
    substitute(system.upper ? upper : lower);
  }

private:
  // Each task solves whole vectors of columns, so the result does not depend on the number of threads.
  static void substitute_leaf(const Substitution<T> &system) {
    const int64_t area = std::max<int64_t>(1, system.n * system.n);
    const int64_t columns = operations_of_solve / area / columns_of_line * columns_of_line;
    parallel_for(system.columns, std::max(columns, columns_of_line), [&](int64_t begin, int64_t end) {
      Substitution<T> part = system;
      part.b += begin;
      part.columns = end - begin;
      lu_kernels().of<T>().substitute(part);
    });
  }

  static int64_t half_of(int64_t size) { return padded(size / 2); }

  int64_t factorize_panel(T *a, int64_t rows, int64_t columns, int64_t stride, int32_t *pivots, bool pivot) const {
    const int64_t width = padded(columns);
    parallel_for(rows, copied_rows, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        std::copy_n(a + i * stride, columns, panel_ + i * width);
        std::fill(panel_ + i * width + columns, panel_ + (i + 1) * width, T(0));
      }
    });
    std::fill(panel_ + rows * width, panel_ + padded(rows) * width, T(0));
    T *scratch = panel_ + padded(rows) * width;
    int32_t info;
    const Elimination<T> elimination{panel_, width, panel_, rows, columns, width, pivots, &info, pivot, scratch};
    lu_kernels().of<T>().eliminate(&elimination, 1);
    parallel_for(rows, copied_rows, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) std::copy_n(panel_ + i * width, columns, a + i * stride);
    });
    return info;
  }

  // C -= A B, where A is m x k and B is k x n.
  void subtract_product(const T *a, int64_t a_row, int64_t a_column, const T *b, int64_t b_row, T *c, int64_t c_row,
                        int64_t m, int64_t n, int64_t k) const {
    auto matrix = [](const T *data, int64_t row, int64_t column) -> Matrix {
      return {const_cast<char *>(reinterpret_cast<const char *>(data)), row, column};
    };
    constexpr DType dtype = sizeof(T) == 8 ? DType::float64 : DType::float32;
    const Matrix out = matrix(c, c_row, 1);
    multiply_({dtype, m, n, k, -1, 1, matrix(a, a_row, a_column), matrix(b, b_row, 1), out, out});
  }

  MultiplyMatrices multiply_;
  T *panel_;
};

} // namespace orchard
