// The block of the function "sort".
#pragma once

#include "../slices.h"

namespace orchard {

struct SortBlock {
  DTypeField dtype;
  SlicesBlock<3> slices; // x, values, indices
  Whole count;           // elements of each sorted slice to return
  Flag descending;
};

} // namespace orchard
