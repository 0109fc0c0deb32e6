#include "gradients.h"

#include "../lanes.h"

#include <algorithm>
#include <type_traits>

namespace orchard::ORCHARD_ISA {
namespace {

// Elements that are widened at once.
constexpr int64_t tile = 512;

// Σ g² of whole lanes, at most a tile: side by side in the compute type, 16 in a lane, and from there on in float64.
template <class C> double tile_squares(const C *g, int64_t count) {
  C own[sum_lanes] = {};
  for (int64_t i = 0; i < count; i += sum_lanes)
    for (int lane = 0; lane < sum_lanes; lane++) own[lane] += g[i + lane] * g[i + lane];
  double sums[sum_lanes];
  std::copy_n(own, sum_lanes, sums);
  return lanes_summed(sums);
}

template <class T> double squares_of(const T *gradient, int64_t count) {
  Compute<T> g[tile];
  double sum = 0;
  for (int64_t start = 0; start < count; start += tile) {
    int64_t own = std::min(tile, count - start);
    widen(gradient + start, g, own);
    std::fill(g + own, g + (own + sum_lanes - 1) / sum_lanes * sum_lanes, Compute<T>(0));
    sum += tile_squares(g, (own + sum_lanes - 1) / sum_lanes * sum_lanes);
  }
  return sum;
}

template <class T> void scale_all(Compute<T> factor, const T *before, T *after, int64_t count) {
  Compute<T> g[tile];
  for (int64_t start = 0; start < count; start += tile) {
    int64_t own = std::min(tile, count - start);
    widen(before + start, g, own);
    for (int64_t i = 0; i < own; i++) g[i] *= factor;
    narrow(g, after + start, own);
  }
}

// Calls use(Type<storage>{}); the caller has seen that it is a float.
template <class Use> void with_float(DType dtype, Use use) {
  with_storage(dtype, [&](auto type) {
    if constexpr (std::is_floating_point_v<Compute<typename decltype(type)::type>>) use(type);
  });
}

double squares(DType dtype, const char *gradient, int64_t count) {
  double sum = 0;
  with_float(dtype, [&](auto type) { sum = squares_of(reinterpret_cast<const typename decltype(type)::type *>(gradient), count); });
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
