// The signs of singular vectors, a rule that makes them the same wherever they are computed.
#pragma once

#include "../parallel.h"
#include "svd.h"

namespace orchard {

// 1, or -1 where the first of the elements of the largest absolute value is negative. The largest ones are kept side by
// side, so that the loop becomes one of vectors.
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

// Multiplies columns [first, last) of a row-major matrix by -1 where the first of the elements of the largest absolute
// value is negative; `signs` of so many columns become what they were multiplied by.
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

// Columns that a task of it takes: whole lines of the cache.
inline int64_t oriented_columns(int64_t rows) {
  constexpr int64_t whole_lines = 64, elements_of_task = 1 << 16;
  return std::max(elements_of_task / std::max<int64_t>(1, rows) / whole_lines * whole_lines, whole_lines);
}

// All columns, on all threads.
template <class T> void orient_columns(T *columns, int64_t rows, int64_t count, T *signs) {
  parallel_for(count, oriented_columns(rows),
               [&](int64_t first, int64_t last) { orient_columns(columns, rows, count, first, last, signs); });
}

// Left vectors whose element of the largest absolute value, the first of equal ones, is negative are turned, with the
// right ones; and right ones by themselves that have no left one. The scratch has room for a row of U.
template <class T> void orient_vectors(const SvdBatch<T> &batch, const SvdProblem<T> &own, T *signs) {
  const int64_t left = batch.left(), right = batch.right(), small = batch.small();
  orient_columns(own.u, own.rows, left, signs);
  parallel_for(small, std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(1, own.columns)),
               [&](int64_t first, int64_t last) {
                 for (int64_t k = first; k < last; k++)
                   if (signs[k] < 0) negate_vector(own.vh + k * own.columns, own.columns);
               });
  for (int64_t k = small; k < right; k++) {
    T *row = own.vh + k * own.columns;
    if (sign_of_largest(row, own.columns) < 0) negate_vector(row, own.columns);
  }
}

} // namespace orchard
