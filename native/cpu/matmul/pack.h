// Packs operands in the order in which tiles read them, converted to the accumulator's type.
#pragma once

#include "../dtypes.h"
#include "transpose.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {

// The type in which products are summed. Integers are summed modulo 2^32 or 2^64, which is exact modulo any smaller
// power of two.
template <class S>
using Accumulator =
    std::conditional_t<std::is_integral_v<S>, std::conditional_t<sizeof(S) == 8, uint64_t, uint32_t>, Compute<S>>;

// Converts adjacent elements to the accumulator's type.
template <class T, class S> inline void load_row(const S *in, T *out, int64_t count) {
  if constexpr (std::is_same_v<T, Compute<S>>) widen(in, out, count);
  else
    for (int64_t i = 0; i < count; i++) out[i] = static_cast<T>(in[i]);
}

// Converts elements at any stride to the accumulator's type.
template <class T, class S> inline void load_row(const S *in, int64_t stride, T *out, int64_t count) {
  if (stride == 1) return load_row<T>(in, out, count);
  for (int64_t i = 0; i < count; i++) load_row<T>(in + i * stride, out + i, 1);
}

// Returns adjacent elements in the accumulator's type: `in` itself if it has that type, else a copy in `space`.
template <class T, class S> inline const T *numbers_of(const S *in, T *space, int64_t count) {
  if constexpr (std::is_same_v<T, S>) return in;
  else return load_row<T>(in, space, count), space;
}

// out[p * width] = in[p * stride]
template <class T, int width, class S> inline void pack_lane(const S *in, int64_t stride, int64_t depth, T *out) {
  constexpr int64_t chunk = 64;
  T space[chunk];
  for (int64_t start = 0; start < depth; start += chunk) {
    int64_t length = std::min(chunk, depth - start);
    const T *numbers = space;
    if (stride == 1) numbers = numbers_of(in + start, space, length);
    else load_row<T>(in + start * stride, stride, space, length);
    for (int64_t p = 0; p < length; p++) out[(start + p) * width] = numbers[p];
  }
}

// Packs lanes whose numbers are adjacent along the depth, square by square. Returns the depth up to which whole squares
// exist. The last square may be wider than the remaining lanes and then extends into the lanes of the next step, so
// squares are written in order.
template <class T, int width>
inline int64_t pack_squares(const T *in, int64_t lane_stride, int64_t count, int64_t depth, T *out) {
  constexpr int side = lanes<T>;
  int64_t p = 0;
  for (; p + side <= depth; p += side)
    for (int first = (width - 1) / side * side; first >= 0; first -= side) {
      const T *from = in + first * lane_stride + p;
      T *to = out + p * width + first;
      if (first + side <= count) transpose_square(from, lane_stride, to, width);
      else transpose_part_of_square(from, lane_stride, count - first, to, width);
    }
  return p;
}

// out[p * width + l] = in[l * lane_stride + p * depth_stride] for l < count, and 0 for the lanes up to `width`. If
// `width` is not a multiple of a vector, up to one vector past the panel is overwritten: panels must be packed in
// order, with room after the last.
template <class T, int width, class S>
inline void pack_panel(const S *in, int64_t lane_stride, int64_t depth_stride, int64_t count, int64_t depth, T *out) {
  int64_t packed = 0;
  if constexpr (std::is_same_v<T, S>)
    if (depth_stride == 1) packed = pack_squares<T, width>(in, lane_stride, count, depth, out);
  in += packed * depth_stride, out += packed * width, depth -= packed;
  if (lane_stride == 1 && count == width) {
    for (int64_t p = 0; p < depth; p++) load_row<T>(in + p * depth_stride, out + p * width, width);
    return;
  }
  if (lane_stride == 1) {
    for (int64_t p = 0; p < depth; p++) {
      load_row<T>(in + p * depth_stride, out + p * width, count);
      std::fill_n(out + p * width + count, width - count, T(0));
    }
    return;
  }
  for (int64_t l = 0; l < count; l++) pack_lane<T, width>(in + l * lane_stride, depth_stride, depth, out + l);
  for (int64_t l = count; l < width; l++)
    for (int64_t p = 0; p < depth; p++) out[p * width + l] = T(0);
}

// Packs all panels of `count` lanes. If lanes are adjacent, they are read step by step, so that each cache line is read
// once.
template <class T, int width, class S>
inline void pack_panels(const S *in, int64_t lane_stride, int64_t depth_stride, int64_t count, int64_t depth, T *out) {
  int64_t whole = lane_stride == 1 ? count / width * width : 0;
  for (int64_t p = 0; p < depth; p++)
    for (int64_t l = 0; l < whole; l += width)
      load_row<T>(in + l + p * depth_stride, out + l * depth + p * width, width);
  for (int64_t l = whole; l < count; l += width)
    pack_panel<T, width>(in + l * lane_stride, lane_stride, depth_stride, std::min<int64_t>(width, count - l), depth,
                         out + l * depth);
}

} // namespace orchard::ORCHARD_ISA
