// A Householder reflection H = I - tau v vᵀ that maps a column to a multiple of the first unit vector.
#pragma once

#include "vectors.h"

#include <cmath>
#include <limits>

namespace orchard::ORCHARD_ISA {

// A sum of squares between these limits has neither overflowed nor lost digits to underflow.
template <class T> constexpr T least_square = sizeof(T) == 8 ? T(1e-270) : T(1e-20);
template <class T> constexpr T most_square = sizeof(T) == 8 ? T(1e300) : T(1e37);

// Returns the largest absolute value, or NaN if an element is NaN.
template <class T> inline T largest_of(const T *x, int64_t count) {
  T largest = 0;
  for (int64_t i = 0; i < count; i++) {
    const T size = std::abs(x[i]);
    largest = size > largest || size != size ? size : largest;
  }
  return largest;
}

// Replaces a column by v, whose first element is 1. Returns beta: the reflection maps the column to beta times the unit
// vector. beta has the opposite sign of the column's first element, so that no other element of v exceeds 1. If the
// column already is a multiple of the unit vector, the reflection is the identity: tau is 0, and v is the unit vector.
template <class T> inline T reflect(T *x, int64_t count, T *tau) {
  const T alpha = x[0];
  T *rest = x + 1;
  const int64_t left = count - 1;
  T square = dot(rest, rest, left), scale = 1;
  if (!(square > least_square<T> && square + alpha * alpha < most_square<T>)) {
    const T largest = largest_of(rest, left);
    if (largest == 0) {
      *tau = 0;
      x[0] = 1;
      return alpha;
    }
    scale = std::max(largest, std::abs(alpha));
    for (int64_t i = 0; i < left; i++) rest[i] /= scale;
    square = dot(rest, rest, left);
  }
  const T first = alpha / scale, length = std::sqrt(first * first + square);
  const T beta = first < 0 ? length : -length;
  const T factor = 1 / (first - beta);
  *tau = 1 - first / beta;
  for (int64_t i = 0; i < left; i++) rest[i] *= factor;
  x[0] = 1;
  return beta * scale;
}

} // namespace orchard::ORCHARD_ISA
