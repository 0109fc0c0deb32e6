#include "trapezoid.h"

#include "../lanes.h"
#include "running_sums.h"
#include "tuning.h"

namespace orchard::ORCHARD_ISA {
namespace {

constexpr int64_t slices_together = tuning::scan::trapezoid_slices;
constexpr std::integral_constant<int64_t, 1> one;

template <class T> T integral(double twice, double distance) {
  return store<T>(static_cast<Compute<T>>(twice * 0.5 * distance));
}

// Σ (y[i] + y[i + 1]) of adjacent samples.
template <class T> double twice_sum(const T *y, int64_t length) {
  const double ends = double(load(y[0])) + double(load(y[length - 1]));
  return ends + 2 * summed(length - 2, [=](int64_t i) { return double(load(y[i + 1])); });
}

// Some slices at once, one sample of each after the other. The sum counts all samples but the ends twice. `across` and
// `out_across` are the distances between slices; constants if they are 1.
template <class T, class Across>
void integrate_rows(const NeighborsRun &run, const T *y, T *out, int64_t count, Across across, Across out_across) {
  double twice[slices_together];
  for (int64_t slice = 0; slice < count; slice++) twice[slice] = double(load(y[slice * across]));
  for (int64_t i = 1; i < run.length; i++) {
    const T *sample = y + i * run.along[0];
    const double times = i == run.length - 1 ? 1 : 2;
    for (int64_t slice = 0; slice < count; slice++) twice[slice] += times * double(load(sample[slice * across]));
  }
  for (int64_t slice = 0; slice < count; slice++) out[slice * out_across] = integral<T>(twice[slice], run.distance);
}

template <class T, class Across>
void accumulate_rows(const NeighborsRun &run, const T *y, T *out, int64_t count, Across across, Across out_across) {
  double twice[slices_together] = {};
  for (int64_t i = 1; i < run.length; i++) {
    const T *before = y + (i - 1) * run.along[0], *sample = y + i * run.along[0];
    T *to = out + (i - 1) * run.along[1];
    for (int64_t slice = 0; slice < count; slice++) {
      twice[slice] += double(load(before[slice * across])) + double(load(sample[slice * across]));
      to[slice * out_across] = integral<T>(twice[slice], run.distance);
    }
  }
}

// out[i] = of(y[i + next] - y[i]), with steps that are constants if they are 1
template <class T, class Step, class Of>
void subtract_row(const T *__restrict y, T *__restrict out, int64_t next, int64_t count, Step step, Step out_step,
                  Of of) {
  for (int64_t i = 0; i < count; i++) out[i * out_step] = store<T>(of(load(y[i * step + next]) - load(y[i * step])));
}

template <class T, class Across>
void subtract_rows(const NeighborsRun &run, const T *y, T *out, int64_t count, Across across, Across out_across) {
  const auto same = [](Compute<T> difference) { return difference; };
  for (int64_t i = 0; i + 1 < run.length; i++)
    subtract_row(y + i * run.along[0], out + i * run.along[1], run.along[0], count, across, out_across, same);
}

template <class C> auto divided_by(double divisor) {
  return [by = C(divisor)](C difference) { return difference / by; };
}

template <class T, class Across>
void slopes_of_rows(const NeighborsRun &run, const T *y, T *out, int64_t count, Across across, Across out_across) {
  for (int64_t i = run.ends[0] ? 0 : 1; i < run.length - (run.ends[1] ? 0 : 1); i++) {
    const int64_t first = std::max<int64_t>(i - 1, 0), last = std::min(i + 1, run.length - 1);
    subtract_row(y + first * run.along[0], out + i * run.along[1], (last - first) * run.along[0], count, across,
                 out_across, divided_by<Compute<T>>(double(last - first) * run.distance));
  }
}

// The same for one slice.
template <class T, class Step>
void slopes_of_slice(const NeighborsRun &run, const T *y, T *out, Step step, Step out_step) {
  const auto slopes = [&](int64_t first, int64_t distance, int64_t at, int64_t count) {
    subtract_row(y + first * step, out + at * out_step, distance * step, count, step, out_step,
                 divided_by<Compute<T>>(double(distance) * run.distance));
  };
  const int64_t last = run.length - 1;
  if (run.ends[0]) slopes(0, 1, 0, 1);
  slopes(0, 2, 1, last - 1);
  if (run.ends[1]) slopes(last - 1, 1, last, 1);
}

template <class T, class Across>
void run_rows(const NeighborsRun &run, const T *y, T *out, int64_t count, Across across, Across out_across) {
  switch (run.function) {
  case Neighbors::integral: return integrate_rows(run, y, out, count, across, out_across);
  case Neighbors::integrals: return accumulate_rows(run, y, out, count, across, out_across);
  case Neighbors::differences: return subtract_rows(run, y, out, count, across, out_across);
  case Neighbors::slopes: return slopes_of_rows(run, y, out, count, across, out_across);
  case Neighbors::count: break;
  }
}

// Running integrals of one slice of adjacent samples.
template <class T> void accumulate_slice(const NeighborsRun &run, const T *y, T *out) {
  constexpr int64_t tile = tuning::scan::part_tile;
  alignas(64) double twice[tile];
  double carried = run.before;
  for (int64_t start = 0; start + 1 < run.length; start += tile) {
    const int64_t size = std::min(tile, run.length - 1 - start), whole = (size + eight - 1) / eight * eight;
    const T *from = y + start;
    for (int64_t i = 0; i < size; i++) twice[i] = double(load(from[i])) + double(load(from[i + 1]));
    std::fill(twice + size, twice + whole, 0.0);
    carried = run_on(twice, whole, carried);
    T *to = out + start * run.along[1];
    if (run.along[1] == 1)
      for (int64_t i = 0; i < size; i++) to[i] = integral<T>(twice[i], run.distance);
    else
      for (int64_t i = 0; i < size; i++) to[i * run.along[1]] = integral<T>(twice[i], run.distance);
  }
}

// The sum of the samples of pairs, each counted as often as it occurs.
template <class T> double total(const char *samples, int64_t count) {
  const T *y = reinterpret_cast<const T *>(samples);
  return summed(count, [=](int64_t i) { return double(load(y[i])) + double(load(y[i + 1])); });
}

template <class T, class Step> void map_slice(const NeighborsRun &run, const T *y, T *out, Step step, Step out_step) {
  if (run.function == Neighbors::slopes) return slopes_of_slice(run, y, out, step, out_step);
  subtract_row(y, out, step, run.length - 1, step, out_step, [](Compute<T> difference) { return difference; });
}

// Slices of adjacent samples, one after the other: sums have several accumulators. Returns false for other slices.
template <class T> bool run_slices(const NeighborsRun &run, const T *y, T *out) {
  if (run.along[0] != 1 || (run.across[0] == 1 && run.count > 1)) return false;
  for (int64_t slice = 0; slice < run.count; slice++) {
    const T *from = y + slice * run.across[0];
    T *to = out + slice * run.across[1];
    if (run.function == Neighbors::integral) *to = integral<T>(twice_sum(from, run.length), run.distance);
    else if (run.function == Neighbors::integrals) accumulate_slice(run, from, to);
    else if (run.along[1] == 1) map_slice(run, from, to, one, one);
    else map_slice(run, from, to, int64_t(1), run.along[1]);
  }
  return true;
}

template <class T> void compute(const NeighborsRun &run) {
  const T *y = static_cast<const T *>(run.y);
  T *out = static_cast<T *>(run.out);
  if (run_slices(run, y, out)) return;
  const bool are_side_by_side = run.across[0] == 1 && run.across[1] == 1;
  for (int64_t first = 0; first < run.count; first += slices_together) {
    const int64_t count = std::min(slices_together, run.count - first);
    const T *from = y + first * run.across[0];
    T *to = out + first * run.across[1];
    if (are_side_by_side) run_rows(run, from, to, count, one, one);
    else run_rows(run, from, to, count, run.across[0], run.across[1]);
  }
}

} // namespace

extern const NeighborsOf neighbors_of = {{compute<double>, compute<float>, compute<Float16>, compute<BFloat16>},
                                         {total<double>, total<float>, total<Float16>, total<BFloat16>}};

} // namespace orchard::ORCHARD_ISA
