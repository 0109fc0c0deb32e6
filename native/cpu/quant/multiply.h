#pragma once

// Products with `count` rows of x, in batches of `batch_rows`.
// - dtype: of x and the result
// - x_strides: between batches, rows and columns
// - is_fast: x is quantized to 8 bits, if weights have levels
#include "../../.build/generated/product_rows.h"

// - is_transposed: x W instead of x Wᵀ
// - has_bias: one value for each column of the result
#include "../../.build/generated/quantized_matmul_block.h"

// The fields of the head describe the gate's weights; those of `up` have the same format and sizes.
#include "../../.build/generated/quantized_swiglu_block.h"

// Products of the same x with three weights that have the same number of columns.
#include "../../.build/generated/quantized_projections_block.h"

#include "gate.h"
#include "weights.h"
