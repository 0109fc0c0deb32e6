// Operands brought into the order in which tiles read them, and into the type in which they are summed.
#pragma once

#include "../dtypes.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {

// Integers are summed modulo 2^32 or 2^64, which is exact modulo any smaller power of two.
template <class S>
using Accumulator =
    std::conditional_t<std::is_integral_v<S>, std::conditional_t<sizeof(S) == 8, uint64_t, uint32_t>, Compute<S>>;

// Adjacent elements as numbers of the accumulator's type.
template <class T, class S> inline void load_row(const S *in, T *out, int64_t count) {
  if constexpr (std::is_same_v<T, Compute<S>>) widen(in, out, count);
  else
    for (int64_t i = 0; i < count; i++) out[i] = static_cast<T>(in[i]);
}

// The same for elements at any distance.
template <class T, class S> inline void load_row(const S *in, int64_t stride, T *out, int64_t count) {
  if (stride == 1) return load_row<T>(in, out, count);
  for (int64_t i = 0; i < count; i++) load_row<T>(in + i * stride, out + i, 1);
}

// Adjacent elements in the accumulator's type: themselves where they have it, else brought into `space`.
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

// out[p * width + l] = in[l * lane_stride + p * depth_stride] for l < lanes, 0 for the lanes up to `width`.
template <class T, int width, class S>
inline void pack_panel(const S *in, int64_t lane_stride, int64_t depth_stride, int64_t lanes, int64_t depth, T *out) {
  if (lane_stride == 1 && lanes == width) {
    for (int64_t p = 0; p < depth; p++) load_row<T>(in + p * depth_stride, out + p * width, width);
    return;
  }
  if (lane_stride == 1) {
    for (int64_t p = 0; p < depth; p++) {
      load_row<T>(in + p * depth_stride, out + p * width, lanes);
      std::fill_n(out + p * width + lanes, width - lanes, T(0));
    }
    return;
  }
  for (int64_t l = 0; l < lanes; l++) pack_lane<T, width>(in + l * lane_stride, depth_stride, depth, out + l);
  for (int64_t l = lanes; l < width; l++)
    for (int64_t p = 0; p < depth; p++) out[p * width + l] = T(0);
}

} // namespace orchard::ORCHARD_ISA
