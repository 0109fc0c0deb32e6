// Maxima and sums of short slices that are side by side (short_slices.h), for as many slices as a vector has lanes.
#pragma once

#include "log_sum_exp.h"

#include <algorithm>
#include <limits>

namespace orchard::ORCHARD_ISA {

// Σ term(k) over 0 ≤ k < length. Groups of terms are added first, so no term takes part in more than about
// length / 8 + 8 additions.
template <class C, class Term> inline Vector<C> grouped_sum(int64_t length, Term term) {
  constexpr int64_t group = 8;
  Vector<C> sum = {};
  for (int64_t first = 0; first < length; first += group) {
    Vector<C> partial = {};
    for (int64_t k = first; k < std::min(length, first + group); k++) partial += term(k);
    sum += partial;
  }
  return sum;
}

// The largest elements that are not NaN; −∞ where there is none.
template <class C> inline Vector<C> largest_lanes(const C *x, int64_t length, int64_t pitch) {
  const Vector<C> none = {};
  Vector<C> top = none - std::numeric_limits<C>::infinity();
  for (int64_t k = 0; k < length; k++) {
    Vector<C> value = load_vector(x + k * pitch);
    top = value > top ? value : top;
  }
  return top;
}

// NaN where the largest element is infinite, so that the results are NaN.
template <class C> inline Vector<C> finite_lanes(Vector<C> top) {
  const Vector<C> none = {};
  return top - top == none ? top : none + std::numeric_limits<C>::quiet_NaN();
}

inline void logarithms(float *x, int64_t count) {
  for (int64_t i = 0; i < count; i++) x[i] = orchard::ORCHARD_ISA::log(x[i]);
}
inline void logarithms(double *x, int64_t count) {
  for (int64_t i = 0; i < count; i++) x[i] = std::log(x[i]);
}

} // namespace orchard::ORCHARD_ISA
