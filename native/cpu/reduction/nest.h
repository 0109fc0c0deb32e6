// Loop nests of reductions: an index of a nest, counted row-major, and where its element lies in each operand.
#pragma once

#include "../block.h"

#include <algorithm>

namespace orchard {

constexpr int nest_max_rank = 8;

struct Nest {
  int rank = 0;
  int64_t shape[nest_max_rank];
  int64_t strides[2][nest_max_rank]; // of the input, and (kept axes only) of the output

  int64_t size() const {
    int64_t count = 1;
    for (int axis = 0; axis < rank; axis++) count *= shape[axis];
    return count;
  }
  int64_t inner_size() const { return rank == 0 ? 1 : shape[rank - 1]; }
  int64_t inner_stride(int operand) const { return rank == 0 ? 1 : strides[operand][rank - 1]; }

  int64_t offset(int operand, int64_t index) const {
    int64_t result = 0;
    for (int axis = rank - 1; axis > 0; axis--) {
      result += index % shape[axis] * strides[operand][axis];
      index /= shape[axis];
    }
    return rank == 0 ? 0 : result + index * strides[operand][0];
  }
};

// Rank, then shape, strides of the input and, where there are two operands, of the output.
inline Nest read_nest(BlockReader &reader, int operands) {
  Nest nest;
  int64_t rank = reader.whole();
  if (rank < 0 || rank > nest_max_rank) fail(ORCHARD_CPU_INVALID_ARGUMENT, "a nest of rank " + std::to_string(rank) + " came, at most 8 is possible");
  nest.rank = static_cast<int>(rank);
  for (int axis = 0; axis < nest.rank; axis++) nest.shape[axis] = reader.whole();
  for (int operand = 0; operand < operands; operand++)
    for (int axis = 0; axis < nest.rank; axis++) nest.strides[operand][axis] = reader.whole();
  return nest;
}

// Calls run(offset in the input, number of elements) for each run along the innermost axis that covers [begin, end) of the nest, in order.
template <class Run> inline __attribute__((always_inline)) void for_each_run(const Nest &nest, int64_t begin, int64_t end, Run &&run) {
  int64_t inner = nest.inner_size(), stride = nest.inner_stride(0);
  int64_t within = begin < end ? begin % inner : 0;
  for (int64_t at = begin; at < end;) {
    int64_t length = std::min(inner - within, end - at);
    run(nest.offset(0, at), stride, length);
    at += length;
    within = 0;
  }
}

} // namespace orchard
