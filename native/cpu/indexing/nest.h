// Loop nests of blocks that are lists of numbers.
#pragma once

#include "../nest.h"

namespace orchard {

// Reads: rank, the shape, the strides of each operand.
template <int operands> Nest<operands> read_nest(BlockReader &reader) {
  Nest<operands> nest;
  nest.rank = static_cast<int>(reader.whole());
  if (nest.rank < 0 || nest.rank > max_rank) fail(ORCHARD_CPU_INVALID_ARGUMENT, "a rank must be 0 to 8");
  for (int axis = 0; axis < nest.rank; axis++) nest.shape[axis] = reader.whole();
  for (auto &strides : nest.strides)
    for (int axis = 0; axis < nest.rank; axis++) strides[axis] = reader.whole();
  return nest;
}

template <int operands> void find_places(const Nest<operands> &nest, int64_t number, int64_t (&places)[operands]) {
  nest.find_offsets(number, places);
}

} // namespace orchard
