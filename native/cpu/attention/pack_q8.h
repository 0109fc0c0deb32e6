// Packs rows into q8_0 blocks.
#pragma once

#include "../block.h"

namespace orchard {

// Rows of adjacent elements; the shape is [sizes[0], sizes[1], sizes[2]]. The result is dense.
struct PackQ8Block {
  Whole sizes[3], strides[3];
  Whole columns, offset, out_offset;
};

constexpr int64_t q8_values = 32, q8_bytes = 34;

// Packs `count` values, a multiple of 32. Returns false if a value, or a scale as a float16, is not finite.
bool pack_q8_row(const float *x, int64_t count, char *out);

} // namespace orchard
