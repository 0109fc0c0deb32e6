// Sums of a few lines of scatterAdd.
#pragma once

#include "../dtypes.h"
#include "nest.h"

namespace orchard {

enum ScatterOperand { scatter_x, scatter_index, scatter_source, scatter_out };

// The most lines that are taken together.
inline constexpr int64_t scatter_tile = 16;

struct ScatterAdd {
  int64_t length;     // of a line of the source
  int64_t size;       // of a line of x
  int64_t strides[4]; // along the line, of each operand
  Nest<4> lines;      // over all other axes
};

// Adds `count` neighbouring lines, the first at `places`. `sums` has room for `size * count` sums of 8 bytes.
using ScatterLines = void (*)(const ScatterAdd &scatter, const int64_t *places, int64_t count, const void *x,
                              const void *index, const void *source, void *out, void *sums);

// By dtype; 0 for indices of int64, 1 for int32.
struct ScatterAdditions {
  ScatterLines lines[dtype_count][2];
};

} // namespace orchard

ORCHARD_ISA_TABLE(ScatterAdditions, scatter_additions)
