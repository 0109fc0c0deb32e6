// The blocks of the indexing functions. Indices are int64 or int32; indices out of range are rejected.
#pragma once

#include "../nest.h"

namespace orchard {

// The nest is over x, with stride 0 along the indexed axis, the index and the output. `size` is the length of the
// indexed axis, and `stride` is x's stride along it.
struct GatherBlock {
  DTypeField dtype, index_dtype;
  Whole offsets[3];
  Whole size, stride;
  Flag wraps; // whether negative indices count from the end
  NestBlock<3> nest;
};

// `rows` describes all axes of x but the last, whose length is `columns`. The output is dense.
struct TriangleBlock {
  DTypeField dtype;
  Whole offsets[2];
  Flag lower;
  Whole diagonal, columns;
  Whole stride; // x's stride from one column to the next
  NestBlock<1> rows;
};

// The nest is over the index. The output is int64 and dense.
struct OneHotBlock {
  DTypeField dtype;
  Whole offsets[2];
  Whole classes;
  NestBlock<1> nest;
};

struct FindOutOfRangeBlock {
  DTypeField dtype;
  Whole offset, size;
  Whole except; // an index that is accepted although out of range
  NestBlock<1> nest;
};

// Lists of indices, broadcast to one shape, and the flat indices computed from them. The last operand of the nest is
// dense.
constexpr int most_lists = 8;
struct IndexPlacesBlock {
  DTypeField dtype; // int64 or int32
  Whole lists;
  Whole sizes[most_lists]; // for each list: the length of the axis that it indexes
  Whole offsets[most_lists];
  Whole offset; // of the flat indices
  NestBlock<most_lists + 1> nest;
};

// Describes `count` dense offsets.
struct FindDescentBlock {
  DTypeField dtype;
  Whole offset, count, size;
};

} // namespace orchard
