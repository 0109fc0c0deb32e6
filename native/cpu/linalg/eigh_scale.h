// How a symmetric matrix is scaled before its eigenvalues are computed, and what is nothing beside it then.
#pragma once

#include "eigh.h"

#include <cmath>

namespace orchard::ORCHARD_ISA {

// Numbers that are nothing beside a matrix whose largest element is about 1: below `vanishing`, squares lose digits to
// underflow; below `smallest`, quotients do.
template <class T> constexpr T vanishing = sizeof(T) == 8 ? T(0x1p-480) : T(0x1p-50f);
template <class T> constexpr T smallest = sizeof(T) == 8 ? T(0x1p-960) : T(0x1p-100f);

// The lowest row with an element that is not finite, from 1, or 0; a power of two near the largest element, and by what
// the matrix is multiplied.
template <class T> struct Scaling {
  int64_t refused;
  T scale, factor;
};

// An element of the lower triangle.
template <class T> inline T element(const EighBatch<T> &matrix, int64_t i, int64_t j) {
  return matrix.upper ? matrix.a[j * matrix.n + i] : matrix.a[i * matrix.n + j];
}

template <class T> inline Scaling<T> scaling_of(const EighBatch<T> &matrix) {
  const int64_t n = matrix.n;
  T largest = 0;
  bool is_finite = true;
  for (int64_t i = 0; i < n; i++) {
    const int64_t end = matrix.upper ? n : i + 1;
    for (int64_t j = matrix.upper ? i : 0; j < end; j++) {
      const T value = std::abs(matrix.a[i * n + j]);
      is_finite &= value <= std::numeric_limits<T>::max();
      largest = value > largest ? value : largest;
    }
  }
  if (!is_finite)
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
