// Losses of rows of scores [rows, classes] that separate classes by a margin, and their gradients.
#pragma once

#include "../bounds.h"

namespace orchard {

// For scores x and targets t of a row:
//   multiMargin       factors[t] / classes · Σ over j ≠ t of max(0, margin − x[t] + x[j])ᵖ
//   multilabelMargin  1 / classes · Σ over the targets t before the first negative one, and over j that are none of
//                     them, of max(0, 1 − x[t] + x[j])
ORCHARD_NAMES(MarginLoss, multiMargin, multilabelMargin)

// All operands are contiguous. There is one target per row, or one per score; the result has a loss for each row. The
// gradient has the shape of the scores, and is multiplied by one number per row.
struct MarginLossBlock {
  DTypeField dtype; // float32 or float64
  DTypeField index_dtype;
  Name<MarginLoss> loss;
  Whole rows, classes;
  Real power, margin; // of multiMargin
  Flag has_factors;
  Whole offsets[5]; // scores, targets, factors, scales, result
};
struct MarginLossGradientBlock {
  DTypeField dtype;
  DTypeField index_dtype;
  Name<MarginLoss> loss;
  Whole rows, classes;
  Real power, margin;
  Flag has_factors;
  Whole offsets[5];
};

// The gradient of the negative log likelihood: −factors[t] · scale for the target t of each slice that is not ignored,
// 0 for other classes. Scales and factors have the compute type. The result is contiguous.
struct NllLossGradientBlock {
  DTypeField dtype; // of the result; a float
  DTypeField index_dtype;
  Whole outer, classes, inner; // the targets are [outer, inner], contiguous, and the result is [outer, classes, inner]
  Whole ignore_index;
  Flag has_factors;
  Flag is_mean;     // whether scales are divided by the sum of the targets' factors
  Whole offsets[4]; // targets, factors, scales, result
  Whole scale_steps[2];
};

} // namespace orchard
