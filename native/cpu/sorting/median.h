// The block of the function "median".
#pragma once

#include "../slices.h"

namespace orchard {

// One element of each slice by its position in ascending order, and its index. NaN is larger than all numbers; the
// first of equal elements has the lowest position. The position is `kth`, from 1 on. If that is 0, it is the lower
// middle: with `skips_nan` of the numbers, otherwise of all elements, or the first NaN if there is one. The results are
// contiguous in the order of slices.
struct MedianBlock {
  DTypeField dtype;
  Flag skips_nan;
  Whole kth;
  SlicesBlock<1> slices;
  Whole offsets[2]; // of values and indices
};

} // namespace orchard
