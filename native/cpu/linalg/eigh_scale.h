// Scales a symmetric matrix before its eigenvalues are computed, and defines which elements are negligible afterwards.
#pragma once

#include "eigh.h"

#include <algorithm>
#include <cmath>

namespace orchard::ORCHARD_ISA {

// Thresholds for a matrix whose largest element is about 1. Below `vanishing`, squares lose digits to underflow; below
// `smallest`, quotients do.
template <class T> constexpr T vanishing = sizeof(T) == 8 ? T(0x1p-480) : T(0x1p-50f);
template <class T> constexpr T smallest = sizeof(T) == 8 ? T(0x1p-960) : T(0x1p-100f);

// `refused` is the first row with an element that is not finite, counted from 1, or 0. `scale` is a power of two near
// the largest element. The matrix is multiplied by `factor`.
template <class T> struct Scaling {
  int64_t refused;
  T scale, factor;
};

// The largest absolute values, one per lane so that loops are vectorized, and whether any number was not finite.
template <class T> struct Sizes {
  static constexpr int lanes = 32;
  T largest[lanes] = {};
  int others = 0;

  void add(const T *x, int64_t count) {
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes)
      for (int lane = 0; lane < lanes; lane++) add(lane, x[i + lane]);
    for (int lane = 0; i < count; i++, lane++) add(lane, x[i]);
  }

private:
  void add(int lane, T value) {
    const T size = std::abs(value);
    others |= !(size <= std::numeric_limits<T>::max());
    largest[lane] = size > largest[lane] ? size : largest[lane];
  }
};

// Returns an element of the lower triangle.
template <class T> inline T element(const EighBatch<T> &matrix, int64_t i, int64_t j) {
  return matrix.upper ? matrix.a[j * matrix.n + i] : matrix.a[i * matrix.n + j];
}

template <class T> inline Scaling<T> scaling_of(const EighBatch<T> &matrix) {
  const int64_t n = matrix.n;
  Sizes<T> sizes;
  for (int64_t i = 0; i < n; i++) {
    const int64_t first = matrix.upper ? i : 0, end = matrix.upper ? n : i + 1;
    sizes.add(matrix.a + i * n + first, end - first);
  }
  const T largest = *std::max_element(sizes.largest, sizes.largest + sizes.lanes);
  if (sizes.others)
    for (int64_t column = 0; column < n; column++)
      for (int64_t i = column; i < n; i++)
        if (!(std::abs(element(matrix, i, column)) <= std::numeric_limits<T>::max())) return {column + 1, 1, 0};
  int exponent;
  std::frexp(largest, &exponent);
  constexpr int most = std::numeric_limits<T>::max_exponent - 2;
  exponent = largest == 0 ? 0 : std::clamp(exponent, -most, most);
  return {0, std::ldexp(T(1), exponent), std::ldexp(T(1), -exponent)};
}

} // namespace orchard::ORCHARD_ISA
