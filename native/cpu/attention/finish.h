// The last step of a query's softmax.
#pragma once

#include "../dtypes.h"
#include "../elementwise/math.h"
#include "attention.h"

#include <limits>

namespace orchard::ORCHARD_ISA {

// m + ln l, its rounding error, and the factor that turns Σ exp(s − m) v into the output: 0 if the query attends to no
// key.
template <class T> struct FinishedSum {
  T log_sum_exp, low, factor;
};

// Returns a head's sink; if there is none, −∞, which adds nothing to the sum.
template <class S> inline Compute<S> sink_of(const AttentionProblem &problem, int64_t head) {
  if (!problem.sinks.data) return -std::numeric_limits<Compute<S>>::infinity();
  return load(reinterpret_cast<const S *>(problem.sinks.data)[problem.sinks.at(0, head, 0)]);
}

// `largest` is m, the largest of a query's scores, and `sum` is Σ exp(s − m) without the sink. Branch-free, so that
// loops over it are vectorized.
template <class T> inline __attribute__((always_inline)) FinishedSum<T> finish_sum(T largest, T sum, T sink) {
  T whole = sink > largest ? sink : largest, shift = whole == -std::numeric_limits<T>::infinity() ? T(0) : whole;
  T factor = exp(largest - shift), all = sum * factor + exp(sink - shift);
  T logarithm = log(all), rounded = whole + logarithm;
  // The rounding error matters only if |m| is much larger than the logarithm; then this difference is exact (Dekker's
  // Fast2Sum).
  T low = (whole - rounded) + logarithm;
  return {rounded, all == T(0) ? T(0) : low, sum == T(0) ? T(0) : factor / all};
}

} // namespace orchard::ORCHARD_ISA
