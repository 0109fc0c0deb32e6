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
  constexpr int64_t chunk = 64;
  T numbers[chunk];
  for (int64_t l = 0; l < width; l++) {
    const S *lane = in + l * lane_stride;
    for (int64_t start = 0; start < depth; start += chunk) {
      int64_t length = std::min(chunk, depth - start);
      if (l >= lanes) std::fill_n(numbers, length, T(0));
      else load_row<T>(lane + start * depth_stride, depth_stride, numbers, length);
      for (int64_t p = 0; p < length; p++) out[(start + p) * width + l] = numbers[p];
    }
  }
}

} // namespace orchard::ORCHARD_ISA
