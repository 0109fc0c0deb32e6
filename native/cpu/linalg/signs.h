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

// Left vectors whose element of the largest absolute value, the first of equal ones, is negative are turned, with the
// right ones; and right ones by themselves that have no left one. The scratch has room for a row of U.
template <class T> void orient_vectors(const SvdBatch<T> &batch, const SvdProblem<T> &own, T *largest) {
  const int64_t left = batch.left(), right = batch.right(), small = batch.small();
  constexpr int64_t whole_lines = 64, elements_of_task = 1 << 16;
  const int64_t columns = elements_of_task / std::max<int64_t>(1, own.rows) / whole_lines * whole_lines;
  parallel_for(left, std::max(columns, whole_lines), [&](int64_t first, int64_t last) {
    std::fill(largest + first, largest + last, T(0));
    for (int64_t i = 0; i < own.rows; i++)
      for (int64_t k = first; k < last; k++) {
        const T value = own.u[i * left + k];
        largest[k] = std::abs(value) > std::abs(largest[k]) ? value : largest[k];
      }
    for (int64_t k = first; k < std::min(last, small); k++)
      if (largest[k] < 0) negate_vector(own.vh + k * own.columns, own.columns);
    for (int64_t k = first; k < last; k++) largest[k] = largest[k] < 0 ? T(-1) : T(1);
    for (int64_t i = 0; i < own.rows; i++)
      for (int64_t k = first; k < last; k++) own.u[i * left + k] *= largest[k];
  });
  for (int64_t k = small; k < right; k++) {
    T *row = own.vh + k * own.columns;
    if (sign_of_largest(row, own.columns) < 0) negate_vector(row, own.columns);
  }
}

} // namespace orchard
