// Sums of integers of one byte, in narrow lanes. The sums of integers are exact, so their order does not matter.
#pragma once

#include "../dtypes.h"
#include "tuning.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {

// Bools as bytes: compilers do not vectorize conversions of bool.
inline const int8_t *bytes_of(const int8_t *x) { return x; }
inline const uint8_t *bytes_of(const uint8_t *x) { return x; }
inline const uint8_t *bytes_of(const bool *x) { return reinterpret_cast<const uint8_t *>(x); }

// Bools as they are computed: 0 or 1.
inline void widen_row(const Bool *in, bool *out, int64_t count) {
  uint8_t *bytes = reinterpret_cast<uint8_t *>(out);
  for (int64_t i = 0; i < count; i++) bytes[i] = in[i].byte != 0 ? 1 : 0;
}
template <class T> inline void widen_row(const T *in, Compute<T> *out, int64_t count) { widen(in, out, count); }

// A lane of 16 bits holds the sum of 128 bytes, which are from -128 to 255.
template <class C> inline int64_t sum_of_bytes(const C *numbers, int64_t count) {
  const auto *x = bytes_of(numbers);
  constexpr int lanes = 64, most = 128;
  int64_t sum = 0, i = 0;
  while (i + lanes <= count) {
    int16_t partials[lanes] = {};
    const int64_t end = i + std::min<int64_t>(most, (count - i) / lanes) * lanes;
    for (; i < end; i += lanes) {
      __builtin_prefetch(x + i + tuning::reduction::bytes_ahead, 0, 2);
      for (int lane = 0; lane < lanes; lane++) partials[lane] = int16_t(partials[lane] + int16_t(x[i + lane]));
    }
    int32_t all = 0;
    for (int lane = 0; lane < lanes; lane++) all += partials[lane];
    sum += all;
  }
  for (; i < count; i++) sum += x[i];
  return sum;
}

// The sums of columns. A lane of 32 bits holds the sum of 2^23 bytes.
template <class Rows> inline void add_byte_columns(const Rows &rows, int64_t *states, int64_t step) {
  static_assert(tuning::reduction::column_rows <= 1 << 23, "rows of a task");
  int32_t sums[tuning::reduction::reduction_columns] = {};
  rows.each([&](const typename Rows::C *numbers, int64_t) {
    const auto *x = bytes_of(numbers);
    for (int64_t j = 0; j < rows.width; j++) sums[j] += x[j];
  });
  for (int64_t j = 0; j < rows.width; j++) states[j * step] = sums[j];
}

} // namespace orchard::ORCHARD_ISA
