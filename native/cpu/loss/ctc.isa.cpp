#include "ctc.h"

#include "../elementwise/math.h"
#include "../exponential.h"
#include "../independent.h"

#include <algorithm>
#include <limits>

namespace orchard::ORCHARD_ISA {
namespace {

// Represents the logarithm of 0, but sums of it stay finite.
template <class T> constexpr T never = T(-1e30);

template <class T> inline T larger_of(T a, T b) { return a > b ? a : b; }
template <class T> inline T log_sum(T a, T b, T c) {
  const T top = larger_of(larger_of(a, b), c);
  return top + log(exponential(a - top) + exponential(b - top) + exponential(c - top));
}

template <class T> void read_logs(const CtcElement<T> &element, int64_t time, T *logs) {
  const T *row = element.log_probs + time * element.time_stride;
  for (int64_t s = 0; s < element.states; s++) {
    const T log = row[element.classes[s] * element.class_stride];
    logs[s] = log < never<T> ? never<T> : log;
  }
}

// Writes 0 for each state before which a blank may be skipped: a label that differs from the previous label. Writes
// `never` for the others.
template <class T> void find_skips(const CtcElement<T> &element, T *skips) {
  for (int64_t s = 0; s < element.states; s++)
    skips[s] = s % 2 == 1 && s > 2 && element.classes[s] != element.classes[s - 2] ? T(0) : never<T>;
}

// The largest of `count` numbers, a multiple of `ctc_unit`.
template <class T> T largest_of(const T *row, int64_t count) {
  T best[ctc_unit];
  std::fill_n(best, ctc_unit, -std::numeric_limits<T>::infinity());
  for (int64_t s = 0; s < count; s += ctc_unit)
    for (int64_t lane = 0; lane < ctc_unit; lane++) best[lane] = larger_of(row[s + lane], best[lane]);
  for (int64_t half = ctc_unit / 2; half > 0; half /= 2)
    for (int64_t lane = 0; lane < half; lane++) best[lane] = larger_of(best[lane + half], best[lane]);
  return best[0];
}

// Subtracts the largest element of a row from all elements, and returns it.
template <class T> double lower(T *row, int64_t count) {
  const T top = largest_of(row, count);
  for (int64_t s = 0; s < count; s++) row[s] -= top;
  return double(top);
}

// Loops over states include states that never occur, so that whole vectors are computed.
template <class T> double forward(const CtcElement<T> &element, T *space) {
  const int64_t states = element.states, padded = ctc_padded(states), size = ctc_room(element.width);
  T *before = space, *logs = space + size, *skips = logs + size, *row = skips + size;
  std::fill_n(space, 3 * size, never<T>); // two padding entries of `before` come first
  before[2] = 0;                          // before the first time, the state is the first blank
  find_skips(element, skips);
  double total = 0;
  for (int64_t time = 0; time < element.times; time++) {
    read_logs(element, time, logs);
    ORCHARD_INDEPENDENT
    for (int64_t s = 0; s < padded; s++) row[s] = log_sum(before[s + 2], before[s + 1], before[s] + skips[s]) + logs[s];
    total += lower(row, padded);
    element.totals[time] = total;
    std::copy_n(row, states, before + 2);
    std::copy_n(row, states, element.alphas + time * element.width);
  }
  const T none = never<T>;
  const double loss = -(total + double(log_sum(before[states + 1], states > 1 ? before[states] : none, none)));
  return element.totals[element.loss_at] = loss;
}

template <class T>
void backward(const CtcElement<T> &element, T factor, T *space, double *sums, T *gradient, int64_t step) {
  const int64_t states = element.states, padded = ctc_padded(states), size = ctc_room(element.width);
  T *after = space, *betas = space + size, *logs = betas + size, *skips = logs + size, *shares = skips + size,
    *alphas = shares + size;
  std::fill_n(space, 6 * size, never<T>); // two padding entries of `after` come last
  betas[states - 1] = 0;
  if (states > 1) betas[states - 2] = 0;
  find_skips(element, skips);
  double total = element.totals[element.loss_at];
  for (int64_t time = element.times - 1; time >= 0; time--) {
    if (time < element.times - 1) {
      ORCHARD_INDEPENDENT
      for (int64_t s = 0; s < padded; s++) betas[s] = log_sum(after[s], after[s + 1], after[s + 2] + skips[s + 2]);
      total += lower(betas, padded);
    }
    std::copy_n(element.alphas + time * element.width, states, alphas);
    const T offset = T(total + element.totals[time]);
    ORCHARD_INDEPENDENT
    for (int64_t s = 0; s < padded; s++) {
      const T share = alphas[s] + betas[s] + offset;
      shares[s] = exponential(share > 0 ? T(0) : share);
    }
    T *to = gradient + time * step;
    for (int64_t s = 0; s < states; s++) sums[element.classes[s]] += double(shares[s]);
    for (int64_t s = 0; s < states; s++) to[element.classes[s]] = T(-double(factor) * sums[element.classes[s]]);
    for (int64_t s = 0; s < states; s++) sums[element.classes[s]] = 0;
    read_logs(element, time, logs);
    for (int64_t s = 0; s < states; s++) after[s] = betas[s] + logs[s];
  }
}

} // namespace

extern const CtcKernels ctc_kernels = {{forward<double>, backward<double>}, {forward<float>, backward<float>}};

} // namespace orchard::ORCHARD_ISA
