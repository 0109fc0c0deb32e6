// Sums and maxima of adjacent numbers. There are `sum_lanes` partial sums, so that loops are vectorized. They are
// merged as a binary tree, so on every instruction set the result depends only on the elements and their count.
#pragma once

#include "exponential.h"

#include <limits>

namespace orchard::ORCHARD_ISA {

constexpr int sum_lanes = 32;

// Return the larger and the smaller number; NaN if either is NaN.
template <class T> inline T larger(T a, T b) { return bool((a >= b) | (a != a)) ? a : b; }
template <class T> inline T smaller(T a, T b) { return bool((a <= b) | (a != a)) ? a : b; }

inline double lanes_summed(double (&sums)[sum_lanes]) {
  for (int half = sum_lanes / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; lane++) sums[lane] += sums[lane + half];
  return sums[0];
}

// A callback of `summed` that does nothing.
struct Nothing {
  void operator()(int64_t, int64_t) const {}
};

// A callback of `summed` that prefetches the elements needed next: as many as were just summed.
template <class T> struct Fetch {
  const T *next; // null if nothing is needed next

  void operator()(int64_t first, int64_t count) const {
    constexpr int64_t cache_line = 64;
    if (!next) return;
    const char *from = reinterpret_cast<const char *>(next + first);
    for (int64_t at = 0; at < count * int64_t(sizeof(T)); at += cache_line) __builtin_prefetch(from + at, 0, 2);
  }
};

// Σ term(i) over 0 ≤ i < count, in float64.
template <class Term, class Meanwhile = Nothing>
inline double summed(int64_t count, Term term, Meanwhile meanwhile = {}) {
  double sums[sum_lanes] = {};
  int64_t i = 0;
  for (; i + sum_lanes <= count; i += sum_lanes) {
    meanwhile(i, sum_lanes);
    for (int lane = 0; lane < sum_lanes; lane++) sums[lane] += term(i + lane);
  }
  for (int lane = 0; lane < sum_lanes && i < count; i++, lane++) sums[lane] += term(i);
  return lanes_summed(sums);
}

// Returns the largest element that is not NaN; −∞ if there is none.
template <class C> inline C largest(const C *x, int64_t count) {
  C best[sum_lanes];
  for (C &value : best) value = -std::numeric_limits<C>::infinity();
  int64_t i = 0;
  for (; i + sum_lanes <= count; i += sum_lanes)
    for (int lane = 0; lane < sum_lanes; lane++) best[lane] = x[i + lane] > best[lane] ? x[i + lane] : best[lane];
  for (; i < count; i++) best[0] = x[i] > best[0] ? x[i] : best[0];
  for (int lane = 1; lane < sum_lanes; lane++) best[0] = best[lane] > best[0] ? best[lane] : best[0];
  return best[0];
}

// Returns the number that is subtracted before exp: the largest element, or 0 if that is infinite.
template <class C> inline C shift_of(C largest) { return std::isinf(largest) ? C(0) : largest; }

// Returns Σ exp(x - shift), for x ≤ shift, in float64. Groups of four terms are first added in type C, which costs half
// a rounding error of each, since all are positive. With `is_kept`, the exponentials are stored in `out`, which may be
// x.
template <bool is_kept, class C, class Meanwhile = Nothing>
inline double exponentials(const C *x, C shift, C *out, int64_t count, Meanwhile meanwhile = {}) {
  constexpr int block = 4 * sum_lanes;
  double sums[sum_lanes] = {};
  int64_t i = 0;
  for (; i + block <= count; i += block) {
    meanwhile(i, block);
    C terms[block];
    for (int k = 0; k < block; k++)
      terms[k] = is_kept ? exponential(C(x[i + k] - shift)) : exponential_term(C(x[i + k] - shift));
    if constexpr (is_kept)
      for (int k = 0; k < block; k++) out[i + k] = terms[k];
    for (int lane = 0; lane < sum_lanes; lane++)
      sums[lane] +=
          double((terms[lane] + terms[lane + sum_lanes]) + (terms[lane + 2 * sum_lanes] + terms[lane + 3 * sum_lanes]));
  }
  for (int lane = 0; i < count; i++, lane = (lane + 1) % sum_lanes) {
    C term = is_kept ? exponential(C(x[i] - shift)) : exponential_term(C(x[i] - shift));
    if constexpr (is_kept) out[i] = term;
    sums[lane] += double(term);
  }
  return lanes_summed(sums);
}

} // namespace orchard::ORCHARD_ISA
