// Loads a matrix for a singular value decomposition in float64, and stores its singular vectors. W is the matrix, or
// its transpose if it is tall: it has at least as many columns as rows.
#pragma once

#include "../isa.h"
#include "svd.h"

#include <algorithm>
#include <cmath>

namespace orchard::ORCHARD_ISA {

// Computes the exponent of the power of two by which the largest element must be divided to be in [1, 2). Returns
// whether all elements are finite.
template <class T> bool exponent_of(const T *a, int64_t count, int &exponent) {
  T largest = 0, sum = 0;
  for (int64_t i = 0; i < count; i++) {
    T size = std::abs(a[i]);
    largest = size > largest ? size : largest;
    sum += a[i] - a[i]; // NaN if not finite
  }
  exponent = largest > 0 ? std::ilogb(largest) : 0;
  return sum == 0;
}

// Stores W divided by a power of two in rows of `stride` elements, of which those after the last column become 0.
template <class T> void load_rows(const SvdProblem<T> &problem, double *w, int64_t stride, int exponent) {
  // Scales by two factors, since a single factor may overflow.
  const double first = std::ldexp(1.0, -exponent / 2), second = std::ldexp(1.0, -(exponent - exponent / 2));
  const int64_t small = problem.small(), large = problem.large();
  const int64_t row = problem.is_tall() ? 1 : large, column = problem.is_tall() ? small : 1;
  for (int64_t i = 0; i < small; i++) {
    for (int64_t j = 0; j < large; j++) w[i * stride + j] = double(problem.a[i * row + j * column]) * first * second;
    std::fill_n(w + i * stride + large, stride - large, 0.0);
  }
}

// Returns -1 if the element with the largest absolute value, the first of equal ones, is negative; else 1.
template <class T> double sign_of(const double *x, int64_t count) {
  T largest = 0;
  double sign = 1;
  for (int64_t i = 0; i < count; i++) {
    T size = T(std::abs(x[i]));
    if (size > largest) largest = size, sign = std::copysign(1.0, x[i]);
  }
  return sign;
}

template <class T> void store_column(const double *x, double sign, T *to, int64_t count, int64_t stride) {
  for (int64_t i = 0; i < count; i++) to[i * stride] = T(sign * x[i]) + T(0); // no -0
}

// Stores the singular vectors of value `at`: x of W's rows, which is null after the last value, and y of its columns.
template <class T> void store_pair(const SvdProblem<T> &problem, const double *x, const double *y, int64_t at) {
  const int64_t small = problem.small(), large = problem.large(), count = problem.full ? large : small;
  const double sign = problem.is_tall() || !x ? sign_of<T>(y, large) : sign_of<T>(x, small);
  if (problem.is_tall()) {
    store_column(y, sign, problem.u + at, large, count);
    if (x) store_column(x, sign, problem.vh + at * small, small, 1);
  } else {
    store_column(y, sign, problem.vh + at * large, large, 1);
    if (x) store_column(x, sign, problem.u + at, small, small);
  }
}

} // namespace orchard::ORCHARD_ISA
