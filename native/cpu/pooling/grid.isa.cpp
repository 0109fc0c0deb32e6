// Sampling by a grid, one channel after the other.
#include "grid_taps.h"

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

template <class T> void sample_some(const GridSampling &sampling, const T *image, const T *grid, T *out, int count) {
  const int64_t pixels = sampling.height * sampling.width;
  const Corners<T> corners(sampling, grid, count);
  const auto &[rows, columns, at] = corners;
  T values[4][together];
  for (int64_t channel = 0; channel < sampling.channels; channel++) {
    const T *plane = image + channel * pixels;
    T *__restrict to = out + channel * sampling.places;
    load(at[0][0], plane, count, values[0]);
    if (sampling.is_nearest) {
      std::copy_n(values[0], count, to);
      continue;
    }
    load(at[0][1], plane, count, values[1]), load(at[1][0], plane, count, values[2]);
    load(at[1][1], plane, count, values[3]);
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
