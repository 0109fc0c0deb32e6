// The block of the function "searchSorted".
#pragma once

// Contiguous operands: sorted elements [lists, size], values and places [lists, count].
#include "../../.build/generated/search_sorted_block.h"

#include "../block.h"

namespace orchard {

// Among `size` sorted elements, at least one.
struct ValueSearch {
  const char *sorted;
  int64_t size;
  const char *wanted; // `count` values
  int64_t count;
  bool is_right;
};

// Indexed by dtype: writes the number of leading elements that come before each value; elements equal to it count if
// `is_right`. Comparisons with NaN are false, so a NaN comes before everything, and everything comes before a NaN.
struct ValueSearches {
  void (*find[dtype_count])(const ValueSearch &search, int64_t *places);
};

} // namespace orchard

ORCHARD_ISA_TABLE(ValueSearches, value_searches)
