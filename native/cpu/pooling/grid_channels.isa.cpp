// Sampling by a grid, and its gradients, for blocks of interleaved channels: the elements of a place are vectors.
#include "grid_taps.h"
#include "plane_lanes.h"

namespace orchard::ORCHARD_ISA {
namespace {

template <class T> constexpr int parts = planes_together / lanes<T>;
template <class T> alignas(vector_bytes) constexpr T outside[planes_together] = {};

// Returns the elements of a corner of place i.
template <class T> inline const T *elements(const Corner<T> &corner, int i, const T *planes) {
  return corner.are_inside[i] ? planes + int64_t(corner.positions[i]) * planes_together : outside<T>;
}

template <class T> void interleave_channels(const void *image, int64_t pixels, int64_t channels, void *planes) {
  interleave(static_cast<const T *>(image), pixels, channels, pixels, static_cast<T *>(planes));
}

// The products and sums are those of one channel (grid.isa.cpp), in the same order.
template <class T>
void sample_some(const GridSampling &sampling, const T *planes, const T *grid, T (*out)[planes_together], int count) {
  const Corners<T> corners(sampling, grid, count);
  const auto &[rows, columns, at] = corners;
  for (int i = 0; i < count; i++) {
    const T *first = elements(at[0][0], i, planes);
    if (sampling.is_nearest) {
      std::copy_n(first, planes_together, out[i]);
      continue;
    }
    const T *across = elements(at[0][1], i, planes), *down = elements(at[1][0], i, planes);
    const T *both = elements(at[1][1], i, planes);
    const T up = rows.weights[0][i], low = rows.weights[1][i], left = columns.weights[0][i];
    const T right = columns.weights[1][i];
#pragma GCC unroll 8
    for (int part = 0; part < parts<T>; part++) {
      const int lane = part * lanes<T>;
      Vector<T> total = load_vector(first + lane) * up * left;
      total += load_vector(across + lane) * up * right;
      total += load_vector(down + lane) * low * left;
      store_vector<T>(total + load_vector(both + lane) * low * right, out[i] + lane);
    }
  }
}

template <class T>
void sample(const GridSampling &sampling, const void *planes, int64_t channels, const void *grid, void *out,
            int64_t count) {
  T results[together][planes_together];
  for (int64_t at = 0; at < count; at += together) {
    const int some = int(std::min<int64_t>(together, count - at));
    sample_some(sampling, static_cast<const T *>(planes), static_cast<const T *>(grid) + 2 * at, results, some);
    deinterleave(results[0], some, channels, static_cast<T *>(out) + at, sampling.places, narrow<T>);
  }
}

// ---------------------------------------------------------------- gradients

// Adds gradient · weight to the elements of a corner.
template <class T> inline void add_corner(const Corner<T> &corner, int i, const T *gradient, T weight, T *sums) {
  if (!corner.are_inside[i]) return;
  T *to = sums + int64_t(corner.positions[i]) * planes_together;
#pragma GCC unroll 8
  for (int lane = 0; lane < planes_together; lane += lanes<T>)
    store_vector<T>(load_vector(to + lane) + load_vector(gradient + lane) * weight, to + lane);
}

template <class T>
void add_places(const Corners<T> &corners, const T (*gradient)[planes_together], bool is_nearest, T *sums, int count) {
  const auto &[rows, columns, at] = corners;
  for (int i = 0; i < count; i++) {
    if (is_nearest) add_corner(at[0][0], i, gradient[i], T(1), sums);
    else
      for (int row = 0; row < 2; row++)
        for (int column = 0; column < 2; column++)
          add_corner(at[row][column], i, gradient[i], rows.weights[row][i] * columns.weights[column][i], sums);
  }
}

// Adds up the lanes of some places, in float64, and writes every second number. The order of the additions is the same
// on every instruction set.
template <class T> void sum_lanes(const T (*x)[planes_together], double *to, int count) {
  for (int first = 0; first < count; first += planes_together) {
    T turned[planes_together][planes_together];
    transpose_tile(x[first], planes_together, turned[0], planes_together);
    double sums[planes_together][planes_together];
    for (int lane = 0; lane < planes_together; lane++)
      for (int i = 0; i < planes_together; i++) sums[lane][i] = double(turned[lane][i]);
    for (int half = planes_together / 2; half > 0; half /= 2)
      for (int lane = 0; lane < half; lane++)
        for (int i = 0; i < planes_together; i++) sums[lane][i] += sums[lane + half][i];
    for (int i = 0; i < std::min(planes_together, count - first); i++) to[2 * (first + i)] = sums[0][i];
  }
}

// The derivatives by column and by row of the elements at each place, times their gradients.
template <class T>
void find_slopes(const Corners<T> &corners, const T *planes, const T (*gradient)[planes_together], double *slopes,
                 int count) {
  const auto &[rows, columns, at] = corners;
  T by_column[together][planes_together], by_row[together][planes_together]; // lanes after `count` are not used
  for (int i = 0; i < count; i++) {
    const T *first = elements(at[0][0], i, planes), *across = elements(at[0][1], i, planes);
    const T *down = elements(at[1][0], i, planes), *both = elements(at[1][1], i, planes);
    const T up = rows.weights[0][i], low = rows.weights[1][i], left = columns.weights[0][i];
    const T right = columns.weights[1][i];
#pragma GCC unroll 8
    for (int lane = 0; lane < planes_together; lane += lanes<T>) {
      const Vector<T> a = load_vector(first + lane), b = load_vector(across + lane), c = load_vector(down + lane);
      const Vector<T> d = load_vector(both + lane), slope = load_vector(gradient[i] + lane);
      store_vector<T>(slope * ((b - a) * up + (d - c) * low), by_column[i] + lane);
      store_vector<T>(slope * ((c - a) * left + (d - b) * right), by_row[i] + lane);
    }
  }
  sum_lanes(by_column, slopes, count), sum_lanes(by_row, slopes + 1, count);
}

template <class T> void channels_gradient(const GridSampling &sampling, const SampleGradients &given) {
  const int64_t pixels = sampling.height * sampling.width;
  const T *grid = static_cast<const T *>(given.grid), *of_results = static_cast<const T *>(given.gradient);
  T *sums = static_cast<T *>(given.sums), gradient[together][planes_together];
  if (sums) std::fill_n(sums, pixels * planes_together, T(0));
  for (int64_t at = 0; at < sampling.places; at += together) {
    const int count = int(std::min<int64_t>(together, sampling.places - at));
    const Corners<T> corners(sampling, grid + 2 * at, count);
    interleave(of_results + at, count, given.channels, sampling.places, gradient[0]);
    if (sums) add_places(corners, gradient, sampling.is_nearest, sums, count);
    if (given.slopes)
      find_slopes(corners, static_cast<const T *>(given.planes), gradient, given.slopes + 2 * at, count);
  }
  if (sums) deinterleave(sums, pixels, given.channels, static_cast<T *>(given.of_x), pixels, narrow<T>);
}

template <class T>
void grid_gradient(const GridSampling &sampling, const void *given, const double *slopes, int64_t blocks,
                   int64_t stride, void *result, int64_t count) {
  const T *grid = static_cast<const T *>(given);
  T *out = static_cast<T *>(result), along[2][together];
  const GridAxis<T> columns(sampling.width, sampling), rows(sampling.height, sampling);
  for (int64_t at = 0; at < count; at += together) {
    const int some = int(std::min<int64_t>(together, count - at));
    columns.find_slopes(grid + 2 * at, some, along[0]);
    rows.find_slopes(grid + 2 * at + 1, some, along[1]);
    for (int64_t i = 0; i < 2 * some; i++) {
      double sum = 0;
      for (int64_t block = 0; block < blocks; block++) sum += slopes[block * stride + 2 * at + i];
      const T slope = along[i % 2][i / 2];
      out[2 * at + i] = slope == 0 ? T(0) : T(sum * double(slope));
    }
  }
}

} // namespace

extern const GridBlocks grid_blocks = {planes_together,
                                       {interleave_channels<double>, interleave_channels<float>},
                                       {sample<double>, sample<float>},
                                       {channels_gradient<double>, channels_gradient<float>},
                                       {grid_gradient<double>, grid_gradient<float>}};

} // namespace orchard::ORCHARD_ISA
