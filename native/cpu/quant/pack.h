// Rows packed into blocks of q8_0.
#pragma once

#include "../block.h"

namespace orchard {

// Rows [sizes[0], sizes[1], sizes[2]] of adjacent elements; the result is dense.
struct PackQ8Block {
  Whole sizes[3], strides[3];
  Whole columns, offset, out_offset;
};

} // namespace orchard
