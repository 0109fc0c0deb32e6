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

// The 4 x 4 elements of place i.
template <class T> struct CubicElements {
  const T *at[4][4];
  CubicElements(const Corners<T> &corners, int i, const T *planes) {
    for (int row = 0; row < 4; row++)
      for (int column = 0; column < 4; column++) at[row][column] = elements(corners.at[row][column], i, planes);
  }
  // Returns the sum of a row of elements, with these weights.
  Vector<T> line(int row, int lane, const T *weights) const {
    Vector<T> sum = load_vector(at[row][0] + lane) * weights[0];
    for (int column = 1; column < 4; column++) sum += load_vector(at[row][column] + lane) * weights[column];
    return sum;
  }
};

// Copies the weights of place i.
template <class T> inline void weights_of(const Taps<T> &taps, int i, T *to) {
  for (int tap = 0; tap < 4; tap++) to[tap] = taps.weights[tap][i];
}

template <class T> void sample_cubic(const Corners<T> &corners, const T *planes, T (*out)[planes_together], int count) {
  T up[4], across[4];
  for (int i = 0; i < count; i++) {
    const CubicElements<T> elements(corners, i, planes);
    weights_of(corners.rows, i, up), weights_of(corners.columns, i, across);
    for (int lane = 0; lane < planes_together; lane += lanes<T>) {
      Vector<T> total = elements.line(0, lane, across) * up[0];
      for (int row = 1; row < 4; row++) total += elements.line(row, lane, across) * up[row];
      store_vector<T>(total, out[i] + lane);
    }
  }
}

// The products and sums are those of one channel (grid.isa.cpp), in the same order.
template <class T>
void sample_some(const GridSampling &sampling, const T *planes, const T *grid, T (*out)[planes_together], int count) {
  const Corners<T> corners(sampling, grid, count);
  if (sampling.mode == GridMode::bicubic) return sample_cubic(corners, planes, out, count);
  const auto &[rows, columns, at] = corners;
  for (int i = 0; i < count; i++) {
    const T *first = elements(at[0][0], i, planes);
    if (sampling.mode == GridMode::nearest) {
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
void add_places(const Corners<T> &corners, const T (*gradient)[planes_together], int taps, T *sums, int count) {
  const auto &[rows, columns, at] = corners;
  for (int i = 0; i < count; i++)
    for (int row = 0; row < taps; row++)
      for (int column = 0; column < taps; column++)
        add_corner(at[row][column], i, gradient[i], rows.weights[row][i] * columns.weights[column][i], sums);
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

template <class T>
void find_cubic_slopes(const Corners<T> &corners, const T *planes, const T (*gradient)[planes_together],
                       T (*by_column)[planes_together], T (*by_row)[planes_together], int count) {
  T up[4], across[4], up_slopes[4], across_slopes[4];
  for (int i = 0; i < count; i++) {
    const CubicElements<T> elements(corners, i, planes);
    weights_of(corners.rows, i, up), weights_of(corners.columns, i, across);
    Cubic<T>::find_slopes(corners.rows.parts[i], up_slopes);
    Cubic<T>::find_slopes(corners.columns.parts[i], across_slopes);
    for (int lane = 0; lane < planes_together; lane += lanes<T>) {
      Vector<T> of_column = elements.line(0, lane, across_slopes) * up[0];
      Vector<T> of_row = elements.line(0, lane, across) * up_slopes[0];
      for (int row = 1; row < 4; row++) {
        of_column += elements.line(row, lane, across_slopes) * up[row];
        of_row += elements.line(row, lane, across) * up_slopes[row];
      }
      const Vector<T> slope = load_vector(gradient[i] + lane);
      store_vector<T>(slope * of_column, by_column[i] + lane), store_vector<T>(slope * of_row, by_row[i] + lane);
    }
  }
}

template <class T>
void find_linear_slopes(const Corners<T> &corners, const T *planes, const T (*gradient)[planes_together],
                        T (*by_column)[planes_together], T (*by_row)[planes_together], int count) {
  const auto &[rows, columns, at] = corners;
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
}

// The derivatives by column and by row of the elements at each place, times their gradients.
template <class T>
void find_slopes(const Corners<T> &corners, const T *planes, const T (*gradient)[planes_together], bool is_cubic,
                 double *slopes, int count) {
  T by_column[together][planes_together], by_row[together][planes_together]; // lanes after `count` are not used
  const auto find = is_cubic ? find_cubic_slopes<T> : find_linear_slopes<T>;
  find(corners, planes, gradient, by_column, by_row, count);
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
    if (sums) add_places(corners, gradient, sampling.taps(), sums, count);
    if (given.slopes)
      find_slopes(corners, static_cast<const T *>(given.planes), gradient, sampling.mode == GridMode::bicubic,
                  given.slopes + 2 * at, count);
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
