// Prefix sums of adjacent numbers, with vectors.
#pragma once

#include "../matmul/simd.h"

#include <cstdint>

namespace orchard::ORCHARD_ISA {

inline double added(double a, double b) { return a + b; }
inline int64_t added(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }

// Prefix sums of eight numbers: first of each half; then the last sum of the first half is added to the second half
// (Sklansky, "Conditional-sum addition logic", 1960). First the halves of a vector are combined this way, then vectors,
// so the sums do not depend on the vector length.
constexpr int eight = 8;

#define ORCHARD_WITH_EARLIER(vector, ...) (vector + __builtin_shufflevector(vector, none, __VA_ARGS__))

template <class Number> inline Vector<Number> running_sums(Vector<Number> sums) {
  constexpr int zero = lanes<Number>;
  const Vector<Number> none = {};
  if constexpr (lanes<Number> == 2) return ORCHARD_WITH_EARLIER(sums, zero, 0);
  if constexpr (lanes<Number> == 4) {
    sums = ORCHARD_WITH_EARLIER(sums, zero, 0, zero, 2);
    return ORCHARD_WITH_EARLIER(sums, zero, zero, 1, 1);
  }
  if constexpr (lanes<Number> == 8) {
    sums = ORCHARD_WITH_EARLIER(sums, zero, 0, zero, 2, zero, 4, zero, 6);
    sums = ORCHARD_WITH_EARLIER(sums, zero, zero, 1, 1, zero, zero, 5, 5);
    return ORCHARD_WITH_EARLIER(sums, zero, zero, zero, zero, 3, 3, 3, 3);
  }
}

#undef ORCHARD_WITH_EARLIER

// Replaces `count` numbers, a multiple of eight, by their prefix sums. Returns the carried value.
template <class Number> inline Number run_on(Number *numbers, int64_t count, Number carried) {
  constexpr int step = lanes<Number>;
  for (int64_t k = 0; k < count; k += eight) {
    Vector<Number> parts[eight / step];
    for (int part = 0; part < eight / step; part++)
      parts[part] = running_sums<Number>(load_vector(numbers + k + part * step));
    for (int width = 1; width < eight / step; width *= 2)
      for (int part = 0; part < eight / step; part++)
        if (part & width) parts[part] += parts[(part & ~(width - 1)) - 1][step - 1];
    for (int part = 0; part < eight / step; part++)
      store_vector(Vector<Number>(parts[part] + carried), numbers + k + part * step);
    carried = added(carried, parts[eight / step - 1][step - 1]);
  }
  return carried;
}

} // namespace orchard::ORCHARD_ISA
