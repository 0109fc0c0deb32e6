// Losses of rows of scores [rows, classes] that separate classes by a margin, and their gradients.
#pragma once

#include "../../.build/generated/margin_loss_gradient_block.h"

// For scores x and targets t of a row:
//   multiMargin       factors[t] / classes · Σ over j ≠ t of max(0, margin − x[t] + x[j])ᵖ
//   multilabelMargin  1 / classes · Σ over the targets t before the first negative one, and over j that are none of
//                     them, of max(0, 1 − x[t] + x[j])
#include "../../.build/generated/margin_loss.h"

// All operands are contiguous. There is one target per row, or one per score; the result has a loss for each row. The
// gradient has the shape of the scores, and is multiplied by one number per row.
// - dtype: float32 or float64
// - power, margin: of multiMargin
// - offsets: scores, targets, factors, scales, result
#include "../../.build/generated/margin_loss_block.h"

// The gradient of the negative log likelihood: −factors[t] · scale for the target t of each slice that is not ignored,
// 0 for other classes. Scales and factors have the compute type. The result is contiguous.
// - dtype: of the result; a float
// - outer, classes, inner: the targets are [outer, inner], contiguous, and the result is [outer, classes, inner]
// - is_mean: whether scales are divided by the sum of the targets' factors
// - offsets: targets, factors, scales, result
#include "../../.build/generated/nll_loss_gradient_block.h"

#include "../bounds.h"
