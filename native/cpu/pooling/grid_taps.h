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

inline constexpr int most_taps = 4;

// The elements along an axis, for each place: their indices, whether they are inside, and their weights. `parts` are
// the distances from the second element in mode bicubic.
template <class T> struct Taps {
  Lane<T> places[most_taps][together], are_inside[most_taps][together];
  T weights[most_taps][together], parts[together];
};

// Keys' cubic kernel with a = -3/4, at distances up to 1 and from 1 to 2, and its derivatives.
template <class T> struct Cubic {
  static constexpr T a = T(-0.75);
  static T near(T x) { return ((a + 2) * x - (a + 3)) * x * x + 1; }
  static T far(T x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; }
  static T near_slope(T x) { return (3 * (a + 2) * x - 2 * (a + 3)) * x; }
  static T far_slope(T x) { return (3 * a * x - 10 * a) * x + 8 * a; }

  // Computes the weights of four elements, the second of which is `part` before the position.
  static void find_weights(T part, T *weights) {
    weights[0] = far(part + 1), weights[1] = near(part), weights[2] = near(1 - part), weights[3] = far(2 - part);
  }
  // Computes the derivatives of the weights with respect to the position.
  static void find_slopes(T part, T *slopes) {
    slopes[0] = far_slope(part + 1), slopes[1] = near_slope(part);
    slopes[2] = -near_slope(1 - part), slopes[3] = -far_slope(2 - part);
  }
};

template <class T> class GridAxis {
public:
  GridAxis(int64_t size, const GridSampling &sampling)
      : size_(size), mode_(sampling.mode), border_(sampling.border), aligns_corners_(sampling.aligns_corners) {}

  // Computes the taps of every second number of the grid.
  void find(const T *grid, int count, Taps<T> &taps) const {
    T at[together];
    for (int i = 0; i < count; i++) at[i] = position(grid[2 * i]);
    if (mode_ == GridMode::bicubic) return find_cubic(at, count, taps);
    bound(at, count);
    if (mode_ == GridMode::nearest) {
      for (int i = 0; i < count; i++) at[i] = std::nearbyint(at[i]), taps.weights[0][i] = 1;
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
      slopes[i] = mode_ == GridMode::nearest ? T(0) : scale;
      if (mode_ != GridMode::bilinear || border_ == GridBorder::zeros) continue;
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

  // Moves positions inside the borders, unless these have zeros around them.
  void bound(T *at, int count) const {
    if (border_ == GridBorder::zeros) return;
    if (border_ == GridBorder::reflection)
      for (int i = 0; i < count; i++) at[i] = mirrored(at[i]);
    const T last = T(size_ - 1);
    for (int i = 0; i < count; i++) {
      const T below = at[i] > 0 ? at[i] : T(0); // 0 for NaN
      at[i] = below < last ? below : last;
    }
  }

  // Computes the four taps of positions, each of which is bounded, unlike the positions.
  void find_cubic(const T *at, int count, Taps<T> &taps) const {
    T first[together], bounded[together];
    for (int i = 0; i < count; i++) {
      first[i] = std::floor(at[i]);
      const T part = at[i] - first[i];
      taps.parts[i] = part;
      T weights[4];
      Cubic<T>::find_weights(part, weights);
      for (int tap = 0; tap < 4; tap++) taps.weights[tap][i] = weights[tap];
    }
    for (int tap = 0; tap < 4; tap++) {
      for (int i = 0; i < count; i++) bounded[i] = first[i] + T(tap - 1);
      bound(bounded, count);
      place(bounded, count, taps.places[tap], taps.are_inside[tap]);
    }
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
  GridMode mode_;
  GridBorder border_;
  bool aligns_corners_;
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

// The elements of some places, row by row: one in mode nearest, 2 x 2 or 4 x 4.
template <class T> struct Corners {
  Taps<T> rows, columns;
  Corner<T> at[most_taps][most_taps];

  Corners(const GridSampling &sampling, const T *grid, int count) {
    GridAxis<T>(sampling.height, sampling).find(grid + 1, count, rows);
    GridAxis<T>(sampling.width, sampling).find(grid, count, columns);
    for (int row = 0; row < sampling.taps(); row++)
      for (int column = 0; column < sampling.taps(); column++)
        at[row][column] = Corner<T>(rows, row, columns, column, sampling.width, count);
  }
};

} // namespace orchard::ORCHARD_ISA
