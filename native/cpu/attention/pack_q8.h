// Packs rows into q8_0 blocks.
#pragma once

// Rows of adjacent elements; the shape is [sizes[0], sizes[1], sizes[2]]. The result is dense.
#include "../../.build/generated/pack_q8_block.h"

#include "../block.h"

namespace orchard {

constexpr int64_t q8_values = 32, q8_bytes = 34;

// Packs `count` values, a multiple of 32. Returns false if a value, or a scale as a float16, is not finite.
bool pack_q8_row(const float *x, int64_t count, char *out);

} // namespace orchard
