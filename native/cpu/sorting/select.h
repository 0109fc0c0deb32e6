// Finding the elements whose keys are at most a limit, among many whose keys are not.
#pragma once

#include "../block.h"

namespace orchard {

// Adjacent elements [begin, end) of a slice are looked at, in the order that `descending` gives.
struct Search {
  const char *x; // the slice's first element
  int64_t begin, end;
  bool descending;
  uint64_t limit;
};

// By dtype: writes the indices of the elements whose key is at most the limit, until `room` of them are found,
// and their number. Returns the index where it stopped.
using Find = int64_t (*)(const Search &search, uint32_t *found, int64_t room, int64_t *count);

struct Selections {
  Find find[dtype_count];
};

} // namespace orchard

ORCHARD_ISA_TABLE(Selections, selections)
