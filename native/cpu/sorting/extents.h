// Histograms of intervals of equal width, and the extents of integers.
#pragma once

// Counts elements in `bins` intervals of equal width from `first` to `last`; without a range, from the smallest element
// to the largest. If both are equal, the range is extended by `margin` on each side. Writes the counts and the edges in
// x's dtype, and the bounds used: if these are not finite and ascending, nothing else.
#include "../../.build/generated/even_histogram_block.h"

// found = the smallest and the largest of at least one integer.
#include "../../.build/generated/integer_extent_block.h"

#include "../bounds.h"
