// Sums of a few slices of scatterAdd. A slice is what lies along the axis that is indexed, at one index of all other
// axes.
#pragma once

#include "../nest.h"

namespace orchard {

enum ScatterOperand { scatter_x, scatter_index, scatter_source, scatter_out };

struct ScatterAddBlock {
  DTypeField dtype, index_dtype;
  Whole offsets[4];
  Whole length, size, strides[4];
  NestBlock<4> slices;
};

// The most slices that are taken together.
inline constexpr int64_t scatter_tile = 16;

struct ScatterAdd {
  int64_t length;     // of a slice of the source
  int64_t size;       // of a slice of x
  int64_t strides[4]; // along the slice, of each operand
  Nest<4> slices;     // over all other axes
};

// Adds `count` adjacent slices, the first at `offsets`. `sums` has room for `size * count` sums of 8 bytes. Calls
// `refuse(bad, index)` for an index out of range, and leaves the result alone.
struct ScatterBad {
  void *context;
  void (*refuse)(void *context, int64_t index);
};
using AddSlices = void (*)(const ScatterAdd &scatter, const int64_t *offsets, int64_t count, const void *x,
                           const void *index, const void *source, void *out, void *sums, const ScatterBad &bad);

// By dtype; 0 for indices of int64, 1 for int32.
struct ScatterAdditions {
  AddSlices slices[dtype_count][2];
};

} // namespace orchard

ORCHARD_ISA_TABLE(ScatterAdditions, scatter_additions)
