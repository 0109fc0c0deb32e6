// The block of the function "median".
#pragma once

#include "../slices.h"

namespace orchard {

// The lower middle element of each slice, and its index. NaN is larger than all numbers; the first of equal elements
// has the lowest position. With `skips_nan`, it is the middle of the numbers, otherwise the first NaN if there is one.
// The results are contiguous in the order of slices.
struct MedianBlock {
  DTypeField dtype;
  Flag skips_nan;
  SlicesBlock<1> slices;
  Whole offsets[2]; // of values and indices
};

} // namespace orchard
