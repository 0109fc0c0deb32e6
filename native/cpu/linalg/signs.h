// A rule for the signs of singular vectors, so that all implementations give the same signs.
#pragma once

#include "../parallel.h"
#include "svd.h"
#include "tuning.h"

namespace orchard {

// Returns -1 if the element with the largest absolute value, the first of equal ones, is negative; else 1. The largest
// values are kept per lane, so that the loop is vectorized.
template <class T> T sign_of_largest(const T *x, int64_t count) {
  constexpr int lanes = 16;
  T sizes[lanes] = {};
  int64_t i = 0;
  const auto add = [&](int lane, T size) { sizes[lane] = size > sizes[lane] ? size : sizes[lane]; };
  for (; i + lanes <= count; i += lanes)
    for (int lane = 0; lane < lanes; lane++) add(lane, std::abs(x[i + lane]));
  for (int lane = 0; i < count; i++, lane++) add(lane, std::abs(x[i]));
  const T largest = *std::max_element(sizes, sizes + lanes);
  const T *found = std::find_if(x, x + count, [&](T value) { return std::abs(value) == largest; });
  return found != x + count && *found < 0 ? T(-1) : T(1);
}

template <class T> void negate_vector(T *x, int64_t count) {
  for (int64_t i = 0; i < count; i++) x[i] = -x[i];
}

// Multiplies each of the columns [first, last) of a row-major matrix by sign_of_largest of the column. `signs`, with
// one element per column, receives the factors.
template <class T>
void orient_columns(T *columns, int64_t rows, int64_t stride, int64_t first, int64_t last, T *signs) {
  std::fill(signs + first, signs + last, T(0));
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = first; k < last; k++) {
      const T value = columns[i * stride + k];
      signs[k] = std::abs(value) > std::abs(signs[k]) ? value : signs[k];
    }
  for (int64_t k = first; k < last; k++) signs[k] = signs[k] < 0 ? T(-1) : T(1);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = first; k < last; k++) columns[i * stride + k] *= signs[k];
}

// Returns the number of columns per task: whole cache lines.
inline int64_t oriented_columns(int64_t rows) {
  using tuning::svd::oriented_elements, tuning::svd::whole_lines;
  return std::max(oriented_elements / std::max<int64_t>(1, rows) / whole_lines * whole_lines, whole_lines);
}

// Orients all columns, on all threads.
template <class T> void orient_columns(T *columns, int64_t rows, int64_t count, T *signs) {
  parallel_for(count, oriented_columns(rows),
               [&](int64_t first, int64_t last) { orient_columns(columns, rows, count, first, last, signs); });
}

// Negates each left vector whose element with the largest absolute value, the first of equal ones, is negative, and the
// corresponding right vector. The signs of right vectors without a left vector follow from their elements. The scratch
// has room for a row of U.
template <class T> void orient_vectors(const SvdBatch<T> &batch, const SvdProblem<T> &problem, T *signs) {
  const int64_t left = batch.left(), right = batch.right(), small = batch.small();
  orient_columns(problem.u, problem.rows, left, signs);
  parallel_for(small, std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(1, problem.columns)),
               [&](int64_t first, int64_t last) {
                 for (int64_t k = first; k < last; k++)
                   if (signs[k] < 0) negate_vector(problem.vh + k * problem.columns, problem.columns);
               });
  for (int64_t k = small; k < right; k++) {
    T *row = problem.vh + k * problem.columns;
    if (sign_of_largest(row, problem.columns) < 0) negate_vector(row, problem.columns);
  }
}

} // namespace orchard
