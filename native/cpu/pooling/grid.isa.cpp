// Sampling by a grid, one channel after the other.
#include "grid_taps.h"

#include <cstring>

namespace orchard::ORCHARD_ISA {
namespace {

// Loads the elements of a plane at a corner of each place; 0 for those that are outside.
template <class T> void load(const Corner<T> &corner, const T *plane, int count, T *__restrict to) {
#if defined(__AVX512F__)
  constexpr int width = 64 / int(sizeof(T)); // all lanes of `to` may be written
  for (int i = 0; i < count; i += width) {
    const __m512i inside = _mm512_loadu_si512(corner.are_inside + i), at = _mm512_loadu_si512(corner.positions + i);
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
    const T value = plane[corner.positions[i]];
    to[i] = corner.are_inside[i] ? value : T(0);
  }
#endif
}

// Two taps along the columns. Their elements are next to each other or the same, so that one load gets both, unless
// positions are so large that they are rounded, or lines have one element.
template <class T> class ColumnPair {
public:
  void find(const Taps<T> &columns, int tap, int64_t width, int count) {
    const Lane<T> last = Lane<T>(std::max<int64_t>(0, width - 2));
    Lane<T> distances = 0;
    for (int i = 0; i < count; i++) {
      const Lane<T> left = columns.places[tap][i], right = columns.places[tap + 1][i];
      first_[i] = std::min(std::min(left, right), last);
      are_second_[0][i] = left - first_[i], are_second_[1][i] = right - first_[i];
      distances |= are_second_[0][i] | are_second_[1][i];
    }
    is_one_load_ = width > 1 && distances <= 1;
    width_ = width, columns_ = &columns, tap_ = tap, count_ = count;
  }

  // Loads the elements of a row of each place; 0 for those that are outside.
  void load(const Taps<T> &rows, int row, const T *plane, T *__restrict left, T *__restrict right) const {
    alignas(64) T pairs[2 * together];
    if (is_one_load_) {
      Lane<T> positions[together];
      for (int i = 0; i < count_; i++) positions[i] = rows.places[row][i] * Lane<T>(width_) + first_[i];
      for (int i = 0; i < count_; i++) std::memcpy(pairs + 2 * i, plane + positions[i], 2 * sizeof(T));
    } else
      for (int i = 0; i < count_; i++)
        for (int side = 0; side < 2; side++) {
          const T *line = plane + int64_t(rows.places[row][i]) * width_;
          pairs[2 * i + (are_second_[side][i] != 0)] = line[columns_->places[tap_ + side][i]];
        }
    const Lane<T> *inside = rows.are_inside[row], *inside_left = columns_->are_inside[tap_];
    const Lane<T> *inside_right = columns_->are_inside[tap_ + 1];
    for (int i = 0; i < count_; i++) {
      const T first = pairs[2 * i], second = pairs[2 * i + 1];
      left[i] = inside[i] & inside_left[i] ? are_second_[0][i] ? second : first : T(0);
      right[i] = inside[i] & inside_right[i] ? are_second_[1][i] ? second : first : T(0);
    }
  }

private:
  Lane<T> first_[together], are_second_[2][together];
  const Taps<T> *columns_;
  int64_t width_;
  int tap_, count_;
  bool is_one_load_;
};

template <class T> class SomePlaces {
public:
  SomePlaces(const GridSampling &sampling, const T *grid, int count) : count_(count) {
    GridAxis<T>(sampling.height, sampling).find(grid + 1, count, rows_);
    GridAxis<T>(sampling.width, sampling).find(grid, count, columns_);
    if (sampling.mode == GridMode::nearest) nearest_ = Corner<T>(rows_, 0, columns_, 0, sampling.width, count);
    for (int tap = 0; tap + 1 < sampling.taps(); tap += 2) pairs_[tap / 2].find(columns_, tap, sampling.width, count);
  }

  void sample_nearest(const T *plane, T *to) const {
    T values[together];
    load(nearest_, plane, count_, values);
    std::copy_n(values, count_, to);
  }

  void sample_bilinear(const T *plane, T *__restrict to) const {
    T values[4][together];
    for (int row = 0; row < 2; row++) pairs_[0].load(rows_, row, plane, values[2 * row], values[2 * row + 1]);
    const auto &up = rows_.weights, &across = columns_.weights;
    for (int i = 0; i < count_; i++) {
      T total = values[0][i] * up[0][i] * across[0][i];
      total += values[1][i] * up[0][i] * across[1][i];
      total += values[2][i] * up[1][i] * across[0][i];
      to[i] = total + values[3][i] * up[1][i] * across[1][i];
    }
  }

  void sample_bicubic(const T *plane, T *__restrict to) const {
    T values[4][together];
    const auto &across = columns_.weights;
    for (int row = 0; row < 4; row++) {
      for (int pair = 0; pair < 2; pair++) pairs_[pair].load(rows_, row, plane, values[2 * pair], values[2 * pair + 1]);
      const T *up = rows_.weights[row];
      for (int i = 0; i < count_; i++) {
        T line = values[0][i] * across[0][i];
        line += values[1][i] * across[1][i], line += values[2][i] * across[2][i], line += values[3][i] * across[3][i];
        to[i] = row == 0 ? line * up[i] : to[i] + line * up[i];
      }
    }
  }

private:
  int count_;
  Taps<T> rows_, columns_;
  Corner<T> nearest_;
  ColumnPair<T> pairs_[most_taps / 2];
};

template <class T> void sample_some(const GridSampling &sampling, const T *image, const T *grid, T *out, int count) {
  const int64_t pixels = sampling.height * sampling.width;
  const SomePlaces<T> some(sampling, grid, count);
  for (int64_t channel = 0; channel < sampling.channels; channel++) {
    const T *plane = image + channel * pixels;
    T *to = out + channel * sampling.places;
    if (sampling.mode == GridMode::nearest) some.sample_nearest(plane, to);
    else if (sampling.mode == GridMode::bilinear) some.sample_bilinear(plane, to);
    else some.sample_bicubic(plane, to);
  }
}

template <class T>
void sample(const GridSampling &sampling, const void *image, const void *grid, void *out, int64_t count) {
  for (int64_t at = 0; at < count; at += together)
    sample_some(sampling, static_cast<const T *>(image), static_cast<const T *>(grid) + 2 * at,
                static_cast<T *>(out) + at, int(std::min<int64_t>(together, count - at)));
}

} // namespace

static_assert(static_cast<int>(GridMode::count) == 3, "each mode needs its samples");
static_assert(static_cast<int>(GridBorder::count) == 3, "each border needs its positions");
extern const GridSamplers grid_samplers = {{sample<double>, sample<float>}};

} // namespace orchard::ORCHARD_ISA
