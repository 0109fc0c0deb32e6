// Finds the elements whose keys are at most a limit. Most keys exceed it.
#pragma once

#include "../block.h"

namespace orchard {

// Searches elements [begin, end) of a contiguous slice, in the order given by `descending`.
struct Search {
  const char *x; // the slice's first element
  int64_t begin, end;
  bool descending;
  uint64_t limit;
};

// Indexed by dtype: writes the indices of elements whose key is at most the limit, and their number, until `room` of
// them are found. Returns the index where it stopped.
using Find = int64_t (*)(const Search &search, uint32_t *found, int64_t room, int64_t *count);

struct Selections {
  Find find[dtype_count];
};

} // namespace orchard

ORCHARD_ISA_TABLE(Selections, selections)
