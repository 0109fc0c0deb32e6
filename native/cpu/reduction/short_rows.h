// Copies of short rows to columns, so that a vector holds elements of several rows.
#pragma once

#include "../isa.h"

#include <cstdint>

namespace orchard {

// Rows of adjacent elements, `distance` elements apart. `following` elements after the last row may be read.
struct ShortRowsBlock {
  const char *from;
  int64_t distance, count, length, following;
};

// to[i * count + row] = element i of the row, for elements of 1, 2, 4 and 8 bytes.
struct ShortRowCopies {
  void (*to_columns[4])(const ShortRowsBlock &block, char *to);
};

} // namespace orchard

ORCHARD_ISA_TABLE(ShortRowCopies, short_row_copies)
