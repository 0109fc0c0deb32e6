// Rows of one element, and of steps of a line.
#pragma once

#include "../dtypes.h"

namespace orchard {

// Elements as bits, by the binary logarithm of their bytes.
using FillRow = void (*)(void *out, uint64_t bits, int64_t count, int64_t stride);

struct Line {
  double start, step, end;
  int64_t turn, count;
};

// start + i · step + i · rest / divisor
struct WholeLine {
  int64_t start, step, rest, divisor;
};

struct Creations {
  FillRow fill[4];
  // Elements [begin, end) of the line to `out`. Null where the dtype is no float.
  void (*line[dtype_count])(const Line &line, int64_t begin, int64_t end, void *out);
  void (*whole_line[dtype_count])(const WholeLine &line, int64_t begin, int64_t end, void *out);
};

} // namespace orchard

ORCHARD_ISA_TABLE(Creations, creations)
