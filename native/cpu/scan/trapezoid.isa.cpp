#include "trapezoid.h"

#include "../lanes.h"

namespace orchard::ORCHARD_ISA {
namespace {

constexpr int64_t slices_together = 256;

template <class T> T integral(double twice, double distance) {
  return store<T>(static_cast<Compute<T>>(twice * 0.5 * distance));
}

// Σ (y[i] + y[i + 1]) of adjacent samples.
template <class T> double twice_sum(const T *y, int64_t length) {
  const double ends = double(load(y[0])) + double(load(y[length - 1]));
  return ends + 2 * summed(length - 2, [=](int64_t i) { return double(load(y[i + 1])); });
}

// One slice: sums of adjacent samples have several accumulators, running sums have one.
template <class T> void integrate_slice(const TrapezoidRun &run, const T *y, T *out) {
  if (!run.is_cumulative) {
    *out = integral<T>(twice_sum(y, run.length), run.distance);
    return;
  }
  double twice = 0, before = double(load(y[0]));
  for (int64_t i = 1; i < run.length; i++) {
    const double sample = double(load(y[i]));
    twice += before + sample;
    out[(i - 1) * run.along[1]] = integral<T>(twice, run.distance);
    before = sample;
  }
}

// Some slices at once, one sample of each after the other. The sum counts all samples but the ends twice.
template <class T, class Across>
void integrate_rows(const TrapezoidRun &run, const T *y, T *out, int64_t count, Across across) {
  double twice[slices_together];
  for (int64_t slice = 0; slice < count; slice++) twice[slice] = double(load(y[slice * across]));
  for (int64_t i = 1; i < run.length; i++) {
    const T *sample = y + i * run.along[0];
    const double times = i == run.length - 1 ? 1 : 2;
    for (int64_t slice = 0; slice < count; slice++) twice[slice] += times * double(load(sample[slice * across]));
  }
  for (int64_t slice = 0; slice < count; slice++) out[slice * run.across[1]] = integral<T>(twice[slice], run.distance);
}

template <class T, class Across>
void accumulate_rows(const TrapezoidRun &run, const T *y, T *out, int64_t count, Across across) {
  double twice[slices_together] = {};
  for (int64_t i = 1; i < run.length; i++) {
    const T *before = y + (i - 1) * run.along[0], *sample = y + i * run.along[0];
    T *to = out + (i - 1) * run.along[1];
    for (int64_t slice = 0; slice < count; slice++) {
      twice[slice] += double(load(before[slice * across])) + double(load(sample[slice * across]));
      to[slice * run.across[1]] = integral<T>(twice[slice], run.distance);
    }
  }
}

template <class T, class Across>
void run_rows(const TrapezoidRun &run, const T *y, T *out, int64_t count, Across across) {
  if (run.is_cumulative) accumulate_rows(run, y, out, count, across);
  else integrate_rows(run, y, out, count, across);
}

template <class T> void integrate(const TrapezoidRun &run) {
  const T *y = static_cast<const T *>(run.y);
  T *out = static_cast<T *>(run.out);
  if (run.along[0] == 1 && run.across[0] != 1) {
    for (int64_t slice = 0; slice < run.count; slice++)
      integrate_slice(run, y + slice * run.across[0], out + slice * run.across[1]);
    return;
  }
  for (int64_t first = 0; first < run.count; first += slices_together) {
    const int64_t count = std::min(slices_together, run.count - first);
    const T *from = y + first * run.across[0];
    T *to = out + first * run.across[1];
    if (run.across[0] == 1) run_rows(run, from, to, count, std::integral_constant<int64_t, 1>());
    else run_rows(run, from, to, count, run.across[0]);
  }
}

} // namespace

extern const Trapezoids trapezoids = {{integrate<double>, integrate<float>, integrate<Float16>, integrate<BFloat16>}};

} // namespace orchard::ORCHARD_ISA
