// Sums and largest elements of adjacent numbers. `sum_lanes` sums are kept side by side, so that the loops become
// vectors, and are merged as a binary tree: the result depends on the elements and their count only, on every
// instruction set.
#pragma once

#include "exponential.h"

#include <limits>

namespace orchard::ORCHARD_ISA {

constexpr int sum_lanes = 32;

// The larger one; a NaN where there is one.
template <class T> inline T larger(T a, T b) { return bool((a >= b) | (a != a)) ? a : b; }
template <class T> inline T smaller(T a, T b) { return bool((a <= b) | (a != a)) ? a : b; }

inline double lanes_summed(double (&sums)[sum_lanes]) {
  for (int half = sum_lanes / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; lane++) sums[lane] += sums[lane + half];
  return sums[0];
}

// What is done for each stretch of elements while they are added up: nothing.
struct Nothing {
  void operator()(int64_t, int64_t) const {}
};

// Or: as many elements of those that come next are prefetched.
template <class T> struct Fetch {
  const T *next; // null where none come next

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

// The largest element that is not NaN, −∞ where there is none.
template <class C> inline C largest(const C *x, int64_t count) {
  C best[sum_lanes];
  for (C &own : best) own = -std::numeric_limits<C>::infinity();
  int64_t i = 0;
  for (; i + sum_lanes <= count; i += sum_lanes)
    for (int lane = 0; lane < sum_lanes; lane++) best[lane] = x[i + lane] > best[lane] ? x[i + lane] : best[lane];
  for (; i < count; i++) best[0] = x[i] > best[0] ? x[i] : best[0];
  for (int lane = 1; lane < sum_lanes; lane++) best[0] = best[lane] > best[0] ? best[lane] : best[0];
  return best[0];
}

// What exp(x - largest) is taken of: 0 in place of an infinite largest element.
template <class C> inline C shift_of(C largest) { return std::isinf(largest) ? C(0) : largest; }

// Σ exp(x - shift), for x ≤ shift, in float64 except that four terms are first added up in type C: all are positive, so
// this costs half a rounding of each. Where `is_kept`, `out` gets the exponentials; it may be x.
template <bool is_kept, class C, class Meanwhile = Nothing>
inline double exponentials(const C *x, C shift, C *out, int64_t count, Meanwhile meanwhile = {}) {
  constexpr int block = 4 * sum_lanes;
  double sums[sum_lanes] = {};
  int64_t i = 0;
  for (; i + block <= count; i += block) {
    meanwhile(i, block);
    C own[block];
    for (int k = 0; k < block; k++)
      own[k] = is_kept ? exponential(C(x[i + k] - shift)) : exponential_term(C(x[i + k] - shift));
    if constexpr (is_kept)
      for (int k = 0; k < block; k++) out[i + k] = own[k];
    for (int lane = 0; lane < sum_lanes; lane++)
      sums[lane] +=
          double((own[lane] + own[lane + sum_lanes]) + (own[lane + 2 * sum_lanes] + own[lane + 3 * sum_lanes]));
  }
  for (int lane = 0; i < count; i++, lane = (lane + 1) % sum_lanes) {
    C own = is_kept ? exponential(C(x[i] - shift)) : exponential_term(C(x[i] - shift));
    if constexpr (is_kept) out[i] = own;
    sums[lane] += double(own);
  }
  return lanes_summed(sums);
}

} // namespace orchard::ORCHARD_ISA
