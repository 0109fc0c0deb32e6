// The blocks of the functions "orderStatistic" and "runs".
#pragma once

#include "../slices.h"

namespace orchard {

// An element of a sorted slice: the last element of the first longest run, the middle element (or the first NaN, if
// there is one), or the middle element of the numbers.
enum OrderStatistic : int { order_mode, order_median, order_nanmedian, order_statistics };

// Slices of sorted elements and of their indices, and for each the index of an element, contiguous in the order of
// slices.
struct OrderStatisticBlock {
  DTypeField dtype;
  Whole statistic; // a value of OrderStatistic
  SlicesBlock<2> slices;
  Whole offset;
};

// A vector, the first element of each run of equal ones, and where the runs begin; both results are contiguous.
struct RunsBlock {
  DTypeField dtype;
  Whole count, stride;
  Whole offsets[3];
};

} // namespace orchard
