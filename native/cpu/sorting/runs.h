// The blocks of the functions "orderStatistic" and "runs".
#pragma once

// Slices of sorted elements and of their indices, and for each the index of an element, contiguous in the order of
// slices.
// - statistic: a value of OrderStatistic
#include "../../.build/generated/order_statistic_block.h"

// A vector, the first element of each run of equal ones, and where the runs begin; both results are contiguous.
#include "../../.build/generated/runs_block.h"

#include "../slices.h"

namespace orchard {

// An element of a sorted slice: the last element of the first longest run, the middle element (or the first NaN, if
// there is one), or the middle element of the numbers.
enum OrderStatistic : int { order_mode, order_median, order_nanmedian, order_statistics };

} // namespace orchard
