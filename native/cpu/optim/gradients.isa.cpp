#include "gradients.h"

#include "../lanes.h"
#include "../tuning.h"

#include <algorithm>
#include <limits>
#include <type_traits>

namespace orchard::ORCHARD_ISA {
namespace {

using tuning::optim::tile;

// The number of elements that are converted at once.

// If a sum is at least this large, squares that underflow in float32 are negligible.
constexpr double least_sum = 0x1p-80;

// Returns Σ g² of at most one tile. Up to 16 squares are added in the compute type in each of sum_lanes partial sums,
// which are then added in float64. If squares overflow or underflow in float32, recomputes the sum in float64.
template <class C> double tile_squares(const C *g, int64_t count) {
  C partials[sum_lanes] = {};
  int64_t i = 0;
  for (; i + sum_lanes <= count; i += sum_lanes)
    for (int lane = 0; lane < sum_lanes; lane++) partials[lane] += g[i + lane] * g[i + lane];
  for (int lane = 0; i < count; i++, lane++) partials[lane] += g[i] * g[i];
  double sums[sum_lanes];
  std::copy_n(partials, sum_lanes, sums);
  double sum = lanes_summed(sums);
  if (sum > least_sum && sum < std::numeric_limits<double>::infinity()) return sum;
  sum = 0;
  for (i = 0; i < count; i++) sum += double(g[i]) * double(g[i]);
  return sum;
}

// Returns elements in the compute type: `elements` itself, or a converted copy in `scratch`.
template <class T> const Compute<T> *computed(const T *elements, int64_t count, Compute<T> *scratch) {
  if constexpr (std::is_same_v<T, Compute<T>>) return elements;
  else {
    widen(elements, scratch, count);
    return scratch;
  }
}

template <class T> double squares_of(const T *gradient, int64_t count) {
  Compute<T> scratch[tile];
  double sum = 0;
  for (int64_t start = 0; start < count; start += tile)
    sum +=
        tile_squares(computed(gradient + start, std::min(tile, count - start), scratch), std::min(tile, count - start));
  return sum;
}

template <class T> void scale_all(Compute<T> factor, const T *__restrict before, T *__restrict after, int64_t count) {
  for (int64_t i = 0; i < count; i++) after[i] = store<T>(Compute<T>(load(before[i]) * factor));
}

// Calls use(Type<storage>{}); the caller has checked that it is a float dtype.
template <class Use> void with_float(DType dtype, Use use) {
  with_storage(dtype, [&](auto type) {
    if constexpr (std::is_floating_point_v<Compute<typename decltype(type)::type>>) use(type);
  });
}

double squares(DType dtype, const char *gradient, int64_t count) {
  double sum = 0;
  with_float(dtype, [&](auto type) {
    sum = squares_of(reinterpret_cast<const typename decltype(type)::type *>(gradient), count);
  });
  return sum;
}

void scale(DType dtype, double factor, const char *before, char *after, int64_t count) {
  with_float(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    scale_all(Compute<T>(factor), reinterpret_cast<const T *>(before), reinterpret_cast<T *>(after), count);
  });
}

} // namespace

extern const GradientKernels gradient_kernels = {squares, scale};

} // namespace orchard::ORCHARD_ISA
