#include "ctc.h"

#include "../elementwise/math.h"
#include "../independent.h"
#include "../lanes.h"

namespace orchard::ORCHARD_ISA {
namespace {

// Stands for the logarithm of 0: sums of it stay finite.
template <class T> constexpr T never = T(-1e30);

template <class T> inline T larger_of(T a, T b) { return a > b ? a : b; }
template <class T> inline T log_sum(T a, T b, T c) {
  const T top = larger_of(larger_of(a, b), c);
  return top + log(exponential(a - top) + exponential(b - top) + exponential(c - top));
}

template <class T> void read_logs(const CtcElement<T> &own, int64_t time, T *logs) {
  const T *row = own.log_probs + time * own.time_stride;
  for (int64_t s = 0; s < own.states; s++) {
    const T log = row[own.classes[s] * own.class_stride];
    logs[s] = log < never<T> ? never<T> : log;
  }
}

// 0 where a blank may be left out: before a label that is another one than the label before.
template <class T> void find_skips(const CtcElement<T> &own, T *skips) {
  for (int64_t s = 0; s < own.states; s++)
    skips[s] = s % 2 == 1 && s > 2 && own.classes[s] != own.classes[s - 2] ? T(0) : never<T>;
}

// Brings the largest of a row to 0, and returns by how much.
template <class T> double lower(T *row, int64_t count) {
  const T top = largest(row, count);
  for (int64_t s = 0; s < count; s++) row[s] -= top;
  return double(top);
}

template <class T> double forward(const CtcElement<T> &own, T *space) {
  const int64_t states = own.states, size = own.width + 2;
  T *before = space, *logs = space + size, *skips = logs + size;
  std::fill_n(before, states + 2, never<T>); // two that are no states stand first
  before[2] = 0;                             // before all times the first blank is certain
  find_skips(own, skips);
  double total = 0;
  for (int64_t time = 0; time < own.times; time++) {
    T *row = own.alphas + time * own.width;
    read_logs(own, time, logs);
    ORCHARD_INDEPENDENT
    for (int64_t s = 0; s < states; s++) row[s] = log_sum(before[s + 2], before[s + 1], before[s] + skips[s]) + logs[s];
    total += lower(row, states);
    own.totals[time] = total;
    std::copy_n(row, states, before + 2);
  }
  const T none = never<T>;
  const double loss = -(total + double(log_sum(before[states + 1], states > 1 ? before[states] : none, none)));
  return own.totals[own.loss_at] = loss;
}

template <class T>
void backward(const CtcElement<T> &own, T factor, T *space, double *sums, T *gradient, int64_t step) {
  const int64_t states = own.states, size = own.width + 2;
  T *after = space, *betas = space + size, *logs = betas + size, *skips = logs + size, *shares = skips + size;
  std::fill_n(after, states + 2, never<T>); // two that are no states stand last
  std::fill_n(skips, size, never<T>);
  std::fill_n(betas, states, never<T>);
  betas[states - 1] = 0;
  if (states > 1) betas[states - 2] = 0;
  find_skips(own, skips);
  double total = own.totals[own.loss_at];
  for (int64_t time = own.times - 1; time >= 0; time--) {
    if (time < own.times - 1) {
      ORCHARD_INDEPENDENT
      for (int64_t s = 0; s < states; s++) betas[s] = log_sum(after[s], after[s + 1], after[s + 2] + skips[s + 2]);
      total += lower(betas, states);
    }
    const T *alphas = own.alphas + time * own.width, offset = T(total + own.totals[time]);
    ORCHARD_INDEPENDENT
    for (int64_t s = 0; s < states; s++) {
      const T share = alphas[s] + betas[s] + offset;
      shares[s] = exponential(share > 0 ? T(0) : share);
    }
    T *to = gradient + time * step;
    for (int64_t s = 0; s < states; s++) sums[own.classes[s]] += double(shares[s]);
    for (int64_t s = 0; s < states; s++) to[own.classes[s]] = T(-double(factor) * sums[own.classes[s]]);
    for (int64_t s = 0; s < states; s++) sums[own.classes[s]] = 0;
    read_logs(own, time, logs);
    for (int64_t s = 0; s < states; s++) after[s] = betas[s] + logs[s];
  }
}

} // namespace

extern const CtcKernels ctc_kernels = {{forward<double>, backward<double>}, {forward<float>, backward<float>}};

} // namespace orchard::ORCHARD_ISA
