// Histograms of intervals of equal width, and the extents of integers.
#pragma once

#include "../bounds.h"

namespace orchard {

// Counts elements in `bins` intervals of equal width from `first` to `last`; without a range, from the smallest element
// to the largest. If both are equal, the range is extended by `margin` on each side. Writes the counts and the edges in
// x's dtype, and the bounds used: if these are not finite and ascending, nothing else.
struct EvenHistogramBlock {
  DTypeField dtype;
  Whole count, bins, offset, stride;
  Flag has_range;
  Real first, last, margin;
};

// found = the smallest and the largest of at least one integer.
struct IntegerExtentBlock {
  DTypeField dtype;
  Whole count, offset, stride;
};

} // namespace orchard
