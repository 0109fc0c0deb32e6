// Loops over operands of one shape, cut into runs along the last axis.
#pragma once

#include "../block.h"

#include <algorithm>
#include <cstdint>

namespace orchard {

inline constexpr int max_rank = 8;

// Strides and places count elements.
template <int operands> struct Nest {
  int rank = 0;
  int64_t shape[max_rank];
  int64_t strides[operands][max_rank];

  int64_t count() const {
    int64_t total = 1;
    for (int axis = 0; axis < rank; axis++) total *= shape[axis];
    return total;
  }
  int64_t run_length() const { return rank == 0 ? 1 : shape[rank - 1]; }
  // From one element of a run to the next.
  int64_t run_stride(int operand) const { return rank == 0 ? 0 : strides[operand][rank - 1]; }
};

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

// Where element number `number`, in row-major order, lies in each operand, from its first element.
template <int operands> void find_places(const Nest<operands> &nest, int64_t number, int64_t (&places)[operands]) {
  for (int64_t &place : places) place = 0;
  for (int axis = nest.rank - 1; axis >= 0; axis--) {
    int64_t index = number % nest.shape[axis];
    number /= nest.shape[axis];
    for (int operand = 0; operand < operands; operand++) places[operand] += index * nest.strides[operand][axis];
  }
}

// Calls use(places, first, length) for the runs that make up the elements [begin, end): `first` is the number of a run's
// first element.
template <int operands, class Use> void for_each_run(const Nest<operands> &nest, int64_t begin, int64_t end, Use &&use) {
  int64_t length = nest.run_length();
  for (int64_t first = begin; first < end;) {
    int64_t places[operands];
    find_places(nest, first, places);
    int64_t part = std::min(end - first, length - first % length);
    use(places, first, part);
    first += part;
  }
}

} // namespace orchard
