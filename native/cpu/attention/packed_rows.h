// Unpacks rows of keys and values that a cache stores as q8_0 blocks.
#pragma once

#include "pack_q8.h"

#include "../matmul/pack.h"

#include <cstring>

namespace orchard::ORCHARD_ISA {

// Unpacks `count` values, a multiple of 32, rounded to S like the results of the function "dequantize".
template <class S> inline void unpack_q8_row(const char *blocks, int64_t count, Compute<S> *out) {
  for (; count >= q8_values; count -= q8_values, blocks += q8_bytes, out += q8_values) {
    Float16 half;
    std::memcpy(&half, blocks, sizeof half);
    const float scale = float(load(half));
    const signed char *levels = reinterpret_cast<const signed char *>(blocks + sizeof half);
    for (int64_t i = 0; i < q8_values; i++) {
      const float value = scale * float(levels[i]);
      if constexpr (std::is_same_v<S, float> || std::is_same_v<S, double>) out[i] = value;
      else out[i] = load(store<S>(value));
    }
  }
}

} // namespace orchard::ORCHARD_ISA
