// The signs of singular vectors, a rule that makes them the same wherever they are computed.
#pragma once

#include "svd.h"

namespace orchard {

template <class T> void negate_vector(T *x, int64_t count) {
  for (int64_t i = 0; i < count; i++) x[i] = -x[i];
}

// Left vectors whose element of the largest absolute value, the first of equal ones, is negative are turned, with the
// right ones; and right ones by themselves that have no left one. The scratch has room for a row of U.
template <class T> void orient_vectors(const SvdBatch<T> &batch, const SvdProblem<T> &own, T *largest) {
  const int64_t left = batch.left(), right = batch.right(), small = batch.small();
  std::fill_n(largest, left, T(0));
  for (int64_t i = 0; i < own.rows; i++)
    for (int64_t k = 0; k < left; k++) {
      const T value = own.u[i * left + k];
      largest[k] = std::abs(value) > std::abs(largest[k]) ? value : largest[k];
    }
  for (int64_t k = 0; k < small; k++)
    if (largest[k] < 0) negate_vector(own.vh + k * own.columns, own.columns);
  for (int64_t k = small; k < right; k++) {
    T *row = own.vh + k * own.columns;
    const T *found = std::max_element(row, row + own.columns, [](T a, T b) { return std::abs(a) < std::abs(b); });
    if (*found < 0) negate_vector(row, own.columns);
  }
  for (int64_t k = 0; k < left; k++) largest[k] = largest[k] < 0 ? T(-1) : T(1);
  for (int64_t i = 0; i < own.rows; i++)
    for (int64_t k = 0; k < left; k++) own.u[i * left + k] *= largest[k];
}

} // namespace orchard
