// Blocks of planes whose elements are interleaved, so that lanes of vectors are planes. Small planes, whose rows are
// shorter than vectors, and windows of several sizes are computed this way.
#pragma once

#include "../dtypes.h"
#include "../matmul/transpose.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {

// The number of planes in a block. Element p of plane l of the block is at p * planes_together + l.
inline constexpr int planes_together = 16;

// Returns the number of elements that a buffer for interleaved planes needs. Tiles may write after the last element.
inline int64_t interleaved_size(int64_t pixels) {
  return (pixels + planes_together - 1) / planes_together * planes_together * planes_together;
}

template <class C> inline void transpose_tile(const C *from, int64_t from_stride, C *to, int64_t to_stride) {
  for (int r = 0; r < planes_together; r += lanes<C>)
    for (int c = 0; c < planes_together; c += lanes<C>)
      transpose_square(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
}

// Interleaves `count` planes, `stride` elements apart; lanes of other planes are 0.
template <class T> void interleave(const T *planes, int64_t pixels, int64_t count, int64_t stride, Compute<T> *to) {
  using C = Compute<T>;
  C tile[planes_together][planes_together] = {};
  for (int64_t p = 0; p < pixels; p += planes_together) {
    C *rows = to + p * planes_together;
    const int64_t some = std::min<int64_t>(planes_together, pixels - p);
    if constexpr (std::is_same_v<T, C>)
      if (count == planes_together && some == planes_together) {
        transpose_tile(planes + p, stride, rows, planes_together);
        continue;
      }
    for (int64_t l = 0; l < count; l++) widen(planes + l * stride + p, tile[l], some);
    transpose_tile(tile[0], planes_together, rows, planes_together);
  }
}

// The inverse of `interleave`: the elements of lane l are converted by convert(from, to, count) and written to
// to[l * stride] and after it.
template <class C, class To, class Convert>
void deinterleave(const C *from, int64_t pixels, int64_t count, To *to, int64_t stride, Convert &&convert) {
  C tile[planes_together][planes_together];
  for (int64_t p = 0; p < pixels; p += planes_together) {
    const C *rows = from + p * planes_together;
    const int64_t some = std::min<int64_t>(planes_together, pixels - p);
    if constexpr (std::is_same_v<C, To>)
      if (count == planes_together && some == planes_together) {
        transpose_tile(rows, planes_together, to + p, stride);
        continue;
      }
    transpose_tile(rows, planes_together, tile[0], planes_together);
    for (int64_t l = 0; l < count; l++) convert(tile[l], to + l * stride + p, some);
  }
}

} // namespace orchard::ORCHARD_ISA
