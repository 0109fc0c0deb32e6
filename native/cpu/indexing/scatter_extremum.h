// The largest or smallest elements of a few slices, put together by indices (scatter_add.h).
#pragma once

#include "scatter_add.h"

namespace orchard {

struct ScatterExtremumBlock {
  DTypeField dtype, index_dtype;
  Whole offsets[4];
  Whole length, size, strides[4];
  NestBlock<4> slices;
  Flag is_largest, includes_self;
};

// Of `count` adjacent slices, the first at `offsets`. NaN is larger and smaller than any number. Without
// `includes_self` an element of x stands only where no index names it. `space` has room for two numbers of 8 bytes for
// each.
struct ScatterExtremum {
  bool is_largest, includes_self;
};
using FindExtrema = void (*)(const ScatterAdd &scatter, const ScatterExtremum &which, const int64_t *offsets,
                             int64_t count, const void *x, const void *index, const void *source, void *out,
                             void *space, const ScatterBad &bad);

// By dtype; 0 for indices of int64, 1 for int32.
struct ScatterExtrema {
  FindExtrema slices[dtype_count][2];
};

} // namespace orchard

ORCHARD_ISA_TABLE(ScatterExtrema, scatter_extrema)
