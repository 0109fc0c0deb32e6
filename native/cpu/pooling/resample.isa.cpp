#include "resample_lanes.h"
#include "tuning.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {
namespace {

using tuning::pooling::short_window;

constexpr int parts_of_window = 8;

// sums = row · weight if `is_first`, else sums += row · weight.
template <bool is_first, class T> void add_row(const T *row, double weight, int64_t count, double *__restrict sums) {
  if (weight == 1)
    for (int64_t i = 0; i < count; i++) sums[i] = is_first ? double(load(row[i])) : sums[i] + double(load(row[i]));
  else
    for (int64_t i = 0; i < count; i++)
      sums[i] = is_first ? double(load(row[i])) * weight : sums[i] + double(load(row[i])) * weight;
}

// Sums the rows of a window over the first two axes.
template <class T> void sum_rows(const Resampling &resampling, const T *plane, int64_t line, double *sums) {
  const auto &[deep, high, wide] = resampling.axes;
  const int64_t z = line / high.output, y = line % high.output;
  bool is_first = true;
  for (int64_t k = 0; k < deep.lengths[z]; k++)
    for (int64_t j = 0; j < high.lengths[y]; j++, is_first = false) {
      const T *row = plane + ((deep.starts[z] + k) * high.input + high.starts[y] + j) * wide.input;
      const double weight = weight_of(deep, z, k) * weight_of(high, y, j);
      if (is_first) add_row<true>(row, weight, wide.input, sums);
      else add_row<false>(row, weight, wide.input, sums);
    }
  if (is_first) std::fill_n(sums, wide.input, 0.0);
  if (wide.factors)
    for (int64_t x = 0; x < wide.input; x++) sums[x] *= wide.factors[x];
}

// Windows of one length without weights, `step` apart.
template <int64_t step> void sum_even(const ResampleAxis &wide, const double *__restrict from, double *__restrict to) {
  const double *first = from + wide.starts[0];
  for (int64_t x = 0; x < wide.output; x++) to[x] = first[x * step];
  for (int64_t k = 1; k < wide.length; k++)
    for (int64_t x = 0; x < wide.output; x++) to[x] += first[x * step + k];
}

// Windows of one short length.
void sum_alike(const ResampleAxis &wide, const double *__restrict from, double *__restrict to) {
  const int64_t length = wide.length;
  for (int64_t k = 0; k < length; k++)
    for (int64_t x = 0; x < wide.output; x++) {
      const double term = from[wide.starts[x] + k] * (wide.weights ? wide.weights[x * length + k] : 1);
      to[x] = k == 0 ? term : to[x] + term;
    }
}

// Short windows of several lengths. Elements after the end of a window are not added, not even with a weight of 0,
// since they may be infinite.
void sum_short(const ResampleAxis &wide, const double *__restrict from, double *__restrict to) {
  std::fill_n(to, wide.output, 0.0);
  for (int64_t k = 0; k < wide.longest; k++)
    for (int64_t x = 0; x < wide.output; x++) {
      const bool is_inside = k < wide.lengths[x];
      const double value = from[is_inside ? wide.starts[x] + k : 0];
      const double weight = wide.weights ? wide.weights[is_inside ? wide.weights_at[x] + k : 0] : 1;
      to[x] = is_inside ? to[x] + value * weight : to[x];
    }
}

double sum_window(const double *from, const double *weights, int64_t length) {
  double parts[parts_of_window] = {}, total = 0;
  int64_t at = 0;
  if (length >= short_window)
    for (; at + parts_of_window <= length; at += parts_of_window)
      for (int lane = 0; lane < parts_of_window; lane++)
        parts[lane] += weights ? from[at + lane] * weights[at + lane] : from[at + lane];
  for (int lane = 0; lane < parts_of_window; lane++) total += parts[lane];
  for (; at < length; at++) total += weights ? from[at] * weights[at] : from[at];
  return total;
}

void sum_columns(const ResampleAxis &wide, const double *from, double *to) {
  if (wide.length > 0 && wide.length < short_window) {
    if (!wide.weights && wide.step == 1) return sum_even<1>(wide, from, to);
    if (!wide.weights && wide.step == 2) return sum_even<2>(wide, from, to);
    return sum_alike(wide, from, to);
  }
  if (wide.longest < short_window && wide.input > 0) return sum_short(wide, from, to);
  for (int64_t x = 0; x < wide.output; x++)
    to[x] =
        sum_window(from + wide.starts[x], wide.weights ? wide.weights + wide.weights_at[x] : nullptr, wide.lengths[x]);
}

template <class T> void line(const Resampling &resampling, const void *plane, int64_t number, void *out, double *rows) {
  const auto &[deep, high, wide] = resampling.axes;
  double *sums = rows + wide.input;
  sum_rows(resampling, static_cast<const T *>(plane), number, rows);
  sum_columns(wide, rows, sums);
  T *to = static_cast<T *>(out);
  const double divisor = (deep.divisors ? deep.divisors[number / high.output] : 1) *
                         (high.divisors ? high.divisors[number % high.output] : 1);
  if (wide.divisors)
    for (int64_t x = 0; x < wide.output; x++) to[x] = store<T>(Compute<T>(sums[x] / (divisor * wide.divisors[x])));
  else if (divisor != 1)
    for (int64_t x = 0; x < wide.output; x++) to[x] = store<T>(Compute<T>(sums[x] / divisor));
  else
    for (int64_t x = 0; x < wide.output; x++) to[x] = store<T>(Compute<T>(sums[x]));
}

} // namespace

extern const Resamplings resamplings = {
    {line<double>, line<float>, line<Float16>, line<BFloat16>},
    planes_together,
    {resample_planes<double>, resample_planes<float>, resample_planes<Float16>, resample_planes<BFloat16>}};

} // namespace orchard::ORCHARD_ISA
