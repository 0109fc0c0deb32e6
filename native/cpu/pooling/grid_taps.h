// The elements that sampling by a grid reads: their positions in a plane and their weights. The formulas are those of
// the operations that other backends compose (src/ops/picture/grid_sample.ts), in the same order.
#pragma once

#include "grid.h"

#include "../matmul/simd.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace orchard::ORCHARD_ISA {

inline constexpr int together = 64; // places whose positions are computed before any channel is sampled

// Integers with as many lanes as the numbers.
template <class T> using Lane = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;

// One or two elements along an axis, for each place: their indices, whether they are inside, and their weights.
template <class T> struct Taps {
  Lane<T> places[2][together], are_inside[2][together];
  T weights[2][together];
};

template <class T> class GridAxis {
public:
  GridAxis(int64_t size, const GridSampling &sampling)
      : size_(size), border_(sampling.border), is_nearest_(sampling.is_nearest),
        aligns_corners_(sampling.aligns_corners) {}

  // Computes the taps of every second number of the grid.
  void find(const T *grid, int count, Taps<T> &taps) const {
    T at[together];
    for (int i = 0; i < count; i++) at[i] = position(grid[2 * i]);
    if (border_ == GridBorder::reflection)
      for (int i = 0; i < count; i++) at[i] = mirrored(at[i]);
    const T last = T(size_ - 1);
    if (border_ != GridBorder::zeros)
      for (int i = 0; i < count; i++) {
        const T below = at[i] > 0 ? at[i] : T(0); // 0 for NaN
        at[i] = below < last ? below : last;
      }
    if (is_nearest_) {
      for (int i = 0; i < count; i++) at[i] = std::nearbyint(at[i]);
      return place(at, count, taps.places[0], taps.are_inside[0]);
    }
    T first[together];
    for (int i = 0; i < count; i++) {
      first[i] = std::floor(at[i]);
      const T part = at[i] - first[i];
      taps.weights[0][i] = 1 - part, taps.weights[1][i] = part;
    }
    place(first, count, taps.places[0], taps.are_inside[0]);
    for (int i = 0; i < count; i++) first[i] += 1;
    place(first, count, taps.places[1], taps.are_inside[1]);
  }

  // Computes the derivatives of the positions with respect to the numbers of the grid.
  void find_slopes(const T *grid, int count, T *slopes) const {
    const T scale = T(aligns_corners_ ? double(size_ - 1) / 2 : double(size_) / 2), last = T(size_ - 1);
    for (int i = 0; i < count; i++) {
      slopes[i] = is_nearest_ ? T(0) : scale;
      if (is_nearest_ || border_ == GridBorder::zeros) continue;
      T at = position(grid[2 * i]);
      if (border_ == GridBorder::reflection) {
        const T low = aligns_corners_ ? 0 : T(-0.5);
        slopes[i] *= T(reflected(at).turns ? -1 : 1) * T((at > low) - (at < low));
        at = mirrored(at);
      }
      if (!(at > 0 && at < last)) slopes[i] = 0;
    }
  }

private:
  T position(T number) const {
    return aligns_corners_ ? (number + 1) * T(double(size_ - 1) / 2) : ((number + 1) * T(size_) - 1) * T(0.5);
  }
  // A position as a multiple of the span between the borders, and the rest.
  struct Reflected {
    T low, span, beyond;
    bool turns; // whether the position is reflected an odd number of times
  };
  Reflected reflected(T at) const {
    const T low = aligns_corners_ ? 0 : T(-0.5), span = T(aligns_corners_ ? size_ - 1 : size_);
    const T distance = std::abs(at - low);
    // The remainders of most positions, by exact subtractions.
    if (distance < span) return {low, span, distance, false};
    if (distance < 2 * span) return {low, span, distance - span, true};
    const T beyond = std::fmod(distance, span);
    return {low, span, beyond, std::fmod(std::floor((distance - beyond) * T(1 / double(span)) + T(0.5)), T(2)) != 0};
  }
  T mirrored(T at) const {
    const auto [low, span, beyond, turns] = reflected(at);
    return span == 0 ? at * 0 : turns ? span + low - beyond : beyond + low;
  }

  // Converts positions to the nearest index inside.
  void place(const T *at, int count, Lane<T> *__restrict places, Lane<T> *__restrict are_inside) const {
    const T last = T(size_ - 1);
    const Lane<T> end = Lane<T>(size_ - 1), always = border_ != GridBorder::zeros;
    for (int i = 0; i < count; i++) {
      const bool is_inside = (at[i] >= 0) & (at[i] <= last);
      const Lane<T> index = Lane<T>(is_inside ? at[i] : T(0));
      places[i] = std::min(is_inside ? index : at[i] > 0 ? end : Lane<T>(0), end); // the last index may be rounded up
      are_inside[i] = Lane<T>(is_inside) | always;
    }
  }

  int64_t size_;
  GridBorder border_;
  bool is_nearest_, aligns_corners_;
};

// The elements of one corner of each place: their positions in a plane, and whether they are inside.
template <class T> struct Corner {
  Lane<T> positions[together], are_inside[together];

  Corner() = default;
  Corner(const Taps<T> &rows, int row, const Taps<T> &columns, int column, int64_t width, int count) {
    for (int i = 0; i < count; i++) {
      are_inside[i] = rows.are_inside[row][i] & columns.are_inside[column][i];
      positions[i] = rows.places[row][i] * Lane<T>(width) + columns.places[column][i];
    }
  }
};

// The corners of some places, row by row; nearest elements have only the first.
template <class T> struct Corners {
  Taps<T> rows, columns;
  Corner<T> at[2][2];

  Corners(const GridSampling &sampling, const T *grid, int count) {
    GridAxis<T>(sampling.height, sampling).find(grid + 1, count, rows);
    GridAxis<T>(sampling.width, sampling).find(grid, count, columns);
    for (int row = 0; row < (sampling.is_nearest ? 1 : 2); row++)
      for (int column = 0; column < (sampling.is_nearest ? 1 : 2); column++)
        at[row][column] = Corner<T>(rows, row, columns, column, sampling.width, count);
  }
};

} // namespace orchard::ORCHARD_ISA
