// The formulas are those of the operations that other backends compose (src/ops/picture/grid_sample.ts), in the same
// order.
#include "grid.h"

#include "../matmul/simd.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace orchard::ORCHARD_ISA {
namespace {

constexpr int together = 64; // places whose positions are computed before any channel is sampled

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
    if (aligns_corners_)
      for (int i = 0; i < count; i++) at[i] = (grid[2 * i] + 1) * T(double(size_ - 1) / 2);
    else
      for (int i = 0; i < count; i++) at[i] = ((grid[2 * i] + 1) * T(size_) - 1) * T(0.5);
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

private:
  // Reflects a position at the borders.
  T mirrored(T at) const {
    const T low = aligns_corners_ ? 0 : T(-0.5), span = T(aligns_corners_ ? size_ - 1 : size_);
    if (span == 0) return at * 0;
    const T distance = std::abs(at - low), beyond = std::fmod(distance, span);
    const bool is_even = std::fmod(std::floor((distance - beyond) * T(1 / double(span)) + T(0.5)), T(2)) == 0;
    return is_even ? beyond + low : span + low - beyond;
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

  // Loads the elements of a plane; 0 for those that are outside.
  void load(const T *plane, int count, T *__restrict to) const {
#if defined(__AVX512F__)
    constexpr int width = 64 / int(sizeof(T)); // all lanes of `to` may be written
    for (int i = 0; i < count; i += width) {
      const __m512i inside = _mm512_loadu_si512(are_inside + i), at = _mm512_loadu_si512(positions + i);
      const uint32_t some = count - i < width ? (1u << (count - i)) - 1 : (1u << width) - 1;
      if constexpr (sizeof(T) == 4) {
        const __mmask16 mask = _mm512_test_epi32_mask(inside, inside) & __mmask16(some);
        _mm512_storeu_ps(to + i, _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, at, plane, 4));
      } else {
        const __mmask8 mask = _mm512_test_epi64_mask(inside, inside) & __mmask8(some);
        _mm512_storeu_pd(to + i, _mm512_mask_i64gather_pd(_mm512_setzero_pd(), mask, at, plane, 8));
      }
    }
#else
    for (int i = 0; i < count; i++) {
      const T value = plane[positions[i]];
      to[i] = are_inside[i] ? value : T(0);
    }
#endif
  }
};

template <class T> void sample_some(const GridSampling &sampling, const T *image, const T *grid, T *out, int count) {
  const int64_t pixels = sampling.height * sampling.width;
  Taps<T> rows, columns;
  GridAxis<T>(sampling.height, sampling).find(grid + 1, count, rows);
  GridAxis<T>(sampling.width, sampling).find(grid, count, columns);
  const auto corner = [&](int row, int column) { return Corner<T>(rows, row, columns, column, sampling.width, count); };
  T values[4][together];
  const Corner<T> first = corner(0, 0);
  if (sampling.is_nearest) {
    for (int64_t channel = 0; channel < sampling.channels; channel++) {
      first.load(image + channel * pixels, count, values[0]);
      std::copy_n(values[0], count, out + channel * sampling.places);
    }
    return;
  }
  const Corner<T> across = corner(0, 1), down = corner(1, 0), both = corner(1, 1);
  for (int64_t channel = 0; channel < sampling.channels; channel++) {
    const T *plane = image + channel * pixels;
    T *__restrict to = out + channel * sampling.places;
    first.load(plane, count, values[0]), across.load(plane, count, values[1]);
    down.load(plane, count, values[2]), both.load(plane, count, values[3]);
    for (int i = 0; i < count; i++) {
      T total = values[0][i] * rows.weights[0][i] * columns.weights[0][i];
      total += values[1][i] * rows.weights[0][i] * columns.weights[1][i];
      total += values[2][i] * rows.weights[1][i] * columns.weights[0][i];
      to[i] = total + values[3][i] * rows.weights[1][i] * columns.weights[1][i];
    }
  }
}

template <class T>
void sample(const GridSampling &sampling, const void *image, const void *grid, void *out, int64_t count) {
  for (int64_t at = 0; at < count; at += together)
    sample_some(sampling, static_cast<const T *>(image), static_cast<const T *>(grid) + 2 * at,
                static_cast<T *>(out) + at, int(std::min<int64_t>(together, count - at)));
}

} // namespace

extern const GridSamplers grid_samplers = {{sample<double>, sample<float>}};

} // namespace orchard::ORCHARD_ISA
