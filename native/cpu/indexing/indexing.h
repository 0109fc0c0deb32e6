// The blocks of the indexing functions. Indices are int64 or int32; indices out of range are rejected.
#pragma once

#include "../nest.h"

namespace orchard {

// The nest is over x, with stride 0 along the indexed axis, the index and the output; `size` is the axis's length,
// `stride` the stride of x along it.
struct GatherBlock {
  DTypeField dtype, index_dtype;
  Whole offsets[3];
  Whole size, stride;
  NestBlock<3> nest;
};

// `rows` is over all axes of x but the last, whose size is `columns`. The output is dense.
struct TriangleBlock {
  DTypeField dtype;
  Whole offsets[2];
  Flag lower;
  Whole diagonal, columns;
  Whole stride; // of x from one column to the next
  NestBlock<1> rows;
};

// The nest is over the index. The output, of int64, is dense.
struct OneHotBlock {
  DTypeField dtype;
  Whole offsets[2];
  Whole classes;
  NestBlock<1> nest;
};

struct FindOutOfRangeBlock {
  DTypeField dtype;
  Whole offset, size;
  Whole except; // an index that counts as in range
  NestBlock<1> nest;
};

// Lists of indices, broadcast to one shape, and the flat indices they give; the last operand of the nest is dense.
constexpr int most_lists = 8;
struct IndexPlacesBlock {
  DTypeField dtype; // int64 or int32
  Whole lists;
  Whole sizes[most_lists]; // of the axis that each list indexes
  Whole offsets[most_lists];
  Whole offset; // of the flat indices
  NestBlock<most_lists + 1> nest;
};

// For `count` dense offsets.
struct FindDescentBlock {
  DTypeField dtype;
  Whole offset, count, size;
};

} // namespace orchard
