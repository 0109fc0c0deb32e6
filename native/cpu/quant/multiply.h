#pragma once

#include "weights.h"

namespace orchard {

struct QuantizedMatmulBlock : WeightHead {
  DTypeField dtype; // of x and the result
  Whole count;      // rows of x
  Whole x_offset;
  Whole x_strides[2]; // from row to row, from column to column
  Flag is_transposed; // x W, and not x Wᵀ
  Flag is_fast;       // x in 8 bits, where weights have levels
  Flag has_bias;      // one value for each column of the result
  Whole bias_offset;
};

} // namespace orchard
