// The end of a query's softmax.
#pragma once

#include "../dtypes.h"
#include "attention.h"

#include <cmath>
#include <limits>

namespace orchard::ORCHARD_ISA {

// With m the largest of a query's scores and l = Σ exp(s − m): its sink takes its share, log_sum_exp gets m + ln l, and what the output Σ exp(s − m) v
// is to be multiplied with is returned; 0 where nobody was attended to.
template <class S, class Statistic>
inline Compute<S> finish_sum(const AttentionProblem &problem, int64_t head, Compute<S> largest, Compute<S> sum, Statistic *log_sum_exp) {
  using T = Compute<S>;
  T factor = 1;
  bool is_empty = sum == T(0);
  if (problem.sinks.data) {
    T sink = load(reinterpret_cast<const S *>(problem.sinks.data)[problem.sinks.at(0, head, 0)]);
    T whole = sink > largest ? sink : largest, shift = whole == -std::numeric_limits<T>::infinity() ? T(0) : whole;
    factor = std::exp(largest - shift);
    sum = sum * factor + std::exp(sink - shift);
    largest = whole;
  }
  *log_sum_exp = Statistic(largest + std::log(sum));
  return is_empty ? T(0) : factor / sum;
}

} // namespace orchard::ORCHARD_ISA
