#pragma once

#include "gate.h"
#include "weights.h"

namespace orchard {

// Products with `count` rows of x, in batches of `batch_rows`.
struct RowsHead {
  DTypeField dtype; // of x and the result
  Whole count, batch_rows;
  Whole x_offset;
  Whole x_strides[3]; // between batches, rows and columns
  Flag is_fast;       // x is quantized to 8 bits, if weights have levels
};

struct ProductHead : WeightHead, RowsHead {};

struct QuantizedMatmulBlock : ProductHead {
  Flag is_transposed; // x W instead of x Wᵀ
  Flag has_bias;      // one value for each column of the result
  Whole bias_offset;
};

// The fields of the head describe the gate's weights; those of `up` have the same format and sizes.
struct QuantizedSwigluBlock : ProductHead {
  Name<GateActivation> activation;
  Whole up_offsets[3];
  Flag has_gate_bias, has_up_bias;
  Whole bias_offsets[2];
};

// Products of the same x with three weights that have the same number of columns.
struct QuantizedProjectionsBlock : RowsHead {
  WeightHead first, second, third;
  Flag has_bias[3];
  Whole bias_offsets[3];
};

} // namespace orchard
