// The end of a query's softmax.
#pragma once

#include "../dtypes.h"
#include "../elementwise/math.h"
#include "attention.h"

#include <limits>

namespace orchard::ORCHARD_ISA {

// m + ln l, what it lost when it was rounded, and what the output Σ exp(s − m) v is to be multiplied with: 0 where
// nobody was attended to.
template <class T> struct FinishedSum {
  T log_sum_exp, low, factor;
};

// A head's sink; −∞, which takes no share, where there is none.
template <class S> inline Compute<S> sink_of(const AttentionProblem &problem, int64_t head) {
  if (!problem.sinks.data) return -std::numeric_limits<Compute<S>>::infinity();
  return load(reinterpret_cast<const S *>(problem.sinks.data)[problem.sinks.at(0, head, 0)]);
}

// With m the largest of a query's scores and l = Σ exp(s − m), of which its sink takes a share. Without a branch, so
// that loops of it become vectors.
template <class T> inline __attribute__((always_inline)) FinishedSum<T> finish_sum(T largest, T sum, T sink) {
  T whole = sink > largest ? sink : largest, shift = whole == -std::numeric_limits<T>::infinity() ? T(0) : whole;
  T factor = exp(largest - shift), all = sum * factor + exp(sink - shift);
  T logarithm = log(all), rounded = whole + logarithm;
  // What is lost matters where m is the larger one by far; then this is exact (Dekker's Fast2Sum).
  T low = (whole - rounded) + logarithm;
  return {rounded, all == T(0) ? T(0) : low, sum == T(0) ? T(0) : factor / all};
}

} // namespace orchard::ORCHARD_ISA
