// Resampling of blocks of planes, whose lanes are planes.
#pragma once

#include "plane_lanes.h"
#include "resample.h"

#include <cstring>

namespace orchard::ORCHARD_ISA {

inline double weight_of(const ResampleAxis &axis, int64_t window, int64_t place) {
  const double factor = axis.factors ? axis.factors[axis.starts[window] + place] : 1;
  return axis.weights ? factor * axis.weights[axis.weights_at[window] + place] : factor;
}

// As many elements as a vector of doubles has.
template <class C> struct PartAs;
template <> struct PartAs<double> {
  using type = Vector<double>;
};
template <> struct PartAs<float> {
  typedef float type __attribute__((vector_size(vector_bytes / 2)));
};
template <class C> using PartOf = typename PartAs<C>::type;

// The sums of a window of each plane.
struct PlaneSums {
  static constexpr int parts = planes_together / lanes<double>;
  Vector<double> values[parts];

  template <bool is_first, class C> void add(const C *from, double weight) {
#pragma GCC unroll 8
    for (int part = 0; part < parts; part++) {
      PartOf<C> some;
      std::memcpy(&some, from + part * lanes<double>, sizeof some);
      const Vector<double> term = __builtin_convertvector(some, Vector<double>) * weight;
      values[part] = is_first ? term : values[part] + term;
    }
  }
  template <class C> void write(double divisor, C *to) const {
#pragma GCC unroll 8
    for (int part = 0; part < parts; part++) {
      const Vector<double> result = divisor == 1 ? values[part] : values[part] / divisor;
      const PartOf<C> some = __builtin_convertvector(result, PartOf<C>);
      std::memcpy(to + part * lanes<double>, &some, sizeof some);
    }
  }
};

// A line of `count` elements of each plane: the sums of the rows of a window over the first two axes.
template <class C> void sum_plane_rows(const Resampling &resampling, const C *x, int64_t line, double *sums) {
  const auto &[deep, high, wide] = resampling.axes;
  const int64_t z = line / high.output, y = line % high.output, count = wide.input * planes_together;
  bool is_first = true;
  for (int64_t k = 0; k < deep.lengths[z]; k++)
    for (int64_t j = 0; j < high.lengths[y]; j++, is_first = false) {
      const C *row = x + ((deep.starts[z] + k) * high.input + high.starts[y] + j) * count;
      const double weight = weight_of(deep, z, k) * weight_of(high, y, j);
      if (is_first)
        for (int64_t i = 0; i < count; i++) sums[i] = double(row[i]) * weight;
      else
        for (int64_t i = 0; i < count; i++) sums[i] += double(row[i]) * weight;
    }
  if (is_first) std::fill_n(sums, count, 0.0);
}

// Computes a line of results from `from`: a row of each plane, or sums of rows.
template <class C, class From>
void sum_plane_columns(const ResampleAxis &wide, const From *from, double divisor, C *to) {
  for (int64_t w = 0; w < wide.output; w++, to += planes_together) {
    PlaneSums sums = {};
    const From *first = from + wide.starts[w] * planes_together;
    for (int64_t i = 0; i < wide.lengths[w]; i++, first += planes_together)
      if (i == 0) sums.add<true>(first, weight_of(wide, w, i));
      else sums.add<false>(first, weight_of(wide, w, i));
    sums.write(wide.divisors ? divisor * wide.divisors[w] : divisor, to);
  }
}

template <class T>
void resample_planes(const Resampling &resampling, const void *x, int64_t count, void *out, double *scratch) {
  using C = Compute<T>;
  const auto &[deep, high, wide] = resampling.axes;
  const int64_t pixels = deep.input * high.input * wide.input, lines = deep.output * high.output;
  const int64_t width = wide.output * planes_together;
  C *from = reinterpret_cast<C *>(scratch + wide.input * planes_together), *to = from + interleaved_size(pixels);
  interleave(static_cast<const T *>(x), pixels, count, pixels, from);
  for (int64_t line = 0; line < lines; line++) {
    const int64_t z = line / high.output, y = line % high.output;
    C *results = to + line * width;
    if (repeats(high, y) && y > 0) std::memcpy(results, results - width, size_t(width) * sizeof(C));
    else if (repeats(deep, z)) std::memcpy(results, results - high.output * width, size_t(width) * sizeof(C));
    else {
      const double divisor = (deep.divisors ? deep.divisors[z] : 1) * (high.divisors ? high.divisors[y] : 1);
      if (deep.lengths[z] == 1 && high.lengths[y] == 1 && weight_of(deep, z, 0) * weight_of(high, y, 0) == 1) {
        const C *row = from + (deep.starts[z] * high.input + high.starts[y]) * wide.input * planes_together;
        sum_plane_columns(wide, row, divisor, results);
      } else {
        sum_plane_rows(resampling, from, line, scratch);
        sum_plane_columns(wide, scratch, divisor, results);
      }
    }
  }
  deinterleave(to, lines * wide.output, count, static_cast<T *>(out), lines * wide.output, narrow<T>);
}

} // namespace orchard::ORCHARD_ISA
