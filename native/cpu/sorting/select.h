// Finds the elements whose keys are at most a limit, which most keys exceed.
#pragma once

#include "../block.h"

namespace orchard {

// A search of elements [begin, end) of a contiguous slice, in the order given by `descending`.
struct Search {
  const char *x; // the slice's first element
  int64_t begin, end;
  bool descending;
  uint64_t limit;
};

// Indexed by dtype: writes the indices of the elements whose key is at most the limit, until `room` of them are found,
// and their number. Returns the index at which it stopped.
using Find = int64_t (*)(const Search &search, uint32_t *found, int64_t room, int64_t *count);

struct Selections {
  Find find[dtype_count];
};

} // namespace orchard

ORCHARD_ISA_TABLE(Selections, selections)
