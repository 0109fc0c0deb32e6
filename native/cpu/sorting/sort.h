// What the function "sort" is given.
#pragma once

#include "../slices.h"

namespace orchard {

struct SortBlock {
  DTypeField dtype;
  SlicesBlock<3> slices; // x, values, indices
  Whole count;           // of a slice's elements in order, how many are taken
  Flag descending;
};

} // namespace orchard
