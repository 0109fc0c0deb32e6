// The negative log likelihood of classes along slices of log probabilities.
#pragma once

// The result has the compute type. It is a number per slice, their sum if `is_summed`, or with `is_mean` the sum
// divided by the sum of the targets' class weights.
// - dtype: of the log probabilities; a float
// - index_dtype: of the targets
// - ignore_index: this target is ignored
// - has_factors: class weights in the compute type
// - slices: log probabilities, targets, result
#include "../../.build/generated/nll_loss_block.h"

#include "../slices.h"
