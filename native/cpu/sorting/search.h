// The block of the function "searchSorted".
#pragma once

#include "../dtypes.h"

namespace orchard {

// Contiguous operands: sorted elements [lists, size], values and places [lists, count].
struct SearchSortedBlock {
  DTypeField dtype;
  Whole lists, size, count;
  Flag right;
  Whole offsets[3];
};

} // namespace orchard
