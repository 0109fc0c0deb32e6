// The negative log likelihood of classes along slices of log probabilities.
#pragma once

#include "../slices.h"

namespace orchard {

// The result has the compute type. It is a number per slice, their sum if `is_summed`, or with `is_mean` the sum
// divided by the sum of the targets' class weights.
struct NllLossBlock {
  DTypeField dtype;       // of the log probabilities; a float
  DTypeField index_dtype; // of the targets
  Whole ignore_index;     // this target is ignored
  Flag has_factors;       // class weights in the compute type
  Whole factors_offset;
  Flag is_summed, is_mean;
  SlicesBlock<3> slices; // log probabilities, targets, result
};

} // namespace orchard
