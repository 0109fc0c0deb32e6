// The elements of pooling windows along an axis.
#pragma once

#include "pooling.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {

// A range of indices; empty if `end` is not greater than `begin`.
struct Range {
  int64_t begin, end;
};

// Adaptive windows divide the input: window w of n is elements ⌊w·input/n⌋ to ⌈(w + 1)·input/n⌉ - 1.
inline bool is_adaptive(const ConvolutionAxis &axis) { return axis.kernel == adaptive_kernel; }

// Returns the position of a window's first element, which may be before the input.
inline int64_t first_of(const ConvolutionAxis &axis, int64_t window) {
  return is_adaptive(axis) ? window * axis.input / axis.output : window * axis.stride - axis.before;
}

// Returns the elements of a window that are inside the input, for a window at a position along an axis.
inline Range places_inside(const ConvolutionAxis &axis, int64_t window) {
  const int64_t first = first_of(axis, window);
  if (is_adaptive(axis)) return {0, ((window + 1) * axis.input + axis.output - 1) / axis.output - first};
  const int64_t begin = first < 0 ? (-first + axis.dilation - 1) / axis.dilation : 0;
  const int64_t end = first < axis.input ? (axis.input - first + axis.dilation - 1) / axis.dilation : 0;
  return {begin, std::min(end, axis.kernel)};
}

// Returns the windows among `windows` whose element `place` is inside the input.
inline Range windows_inside(const ConvolutionAxis &axis, int64_t place, Range windows) {
  const int64_t shift = place * axis.dilation - axis.before;
  const int64_t begin = shift < 0 ? (-shift + axis.stride - 1) / axis.stride : 0;
  const int64_t end = shift < axis.input ? (axis.input - shift + axis.stride - 1) / axis.stride : 0;
  return {std::max(begin, windows.begin), std::min(end, windows.end)};
}

} // namespace orchard::ORCHARD_ISA
