// Loop nests: the axes that several operands share, and the strides of each operand along them.
#pragma once

// A loop nest as stored in a block. Array entries beyond the rank are unspecified.
#include "../.build/generated/nest_block.h"

#include "bounds.h"

#include <algorithm>
#include <cstdint>

namespace orchard {

inline constexpr int max_rank = std::extent_v<decltype(NestBlock<1>::shape)>;

// Throws Failure: a size is negative, or the number of elements overflows.
[[noreturn]] void refuse_shape(const int64_t *shape, int rank);

// Strides and offsets are in elements; offsets are relative to each operand's element (0, …, 0). In a nest without
// elements, all sizes and strides are 0.
template <int operands> struct Nest {
  int rank = 0;
  int64_t shape[max_rank];
  int64_t strides[operands][max_rank];

  Nest() = default;
  Nest(const NestBlock<operands> &block) {
    int64_t axes = block.rank;
    if (axes < 0 || axes > max_rank)
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected a rank of 0 to 8, got " + std::to_string(axes));
    rank = static_cast<int>(axes);
    Extent all;
    bool is_empty = false, is_negative = false;
    for (int axis = 0; axis < rank; axis++) {
      shape[axis] = block.shape[axis];
      is_empty |= shape[axis] == 0;
      is_negative |= shape[axis] < 0;
      all.along(shape[axis], 0);
    }
    if (is_negative || (!is_empty && !all.is_possible())) refuse_shape(shape, rank);
    if (is_empty) {
      clear();
      return;
    }
    for (int operand = 0; operand < operands; operand++)
      for (int axis = 0; axis < rank; axis++) strides[operand][axis] = block.strides[operand][axis];
  }

  // Returns the extent of the elements that the nest visits in an operand.
  Extent extent(int operand) const {
    Extent visited;
    for (int axis = 0; axis < rank; axis++) visited.along(shape[axis], strides[operand][axis]);
    return visited;
  }

  void clear_strides(int operand) { std::fill_n(strides[operand], rank, int64_t(0)); }

  // Copies the strides of operand `like`, for an operand that the call does not use.
  void set_strides_of(int operand, int like) {
    for (int axis = 0; axis < rank; axis++) strides[operand][axis] = strides[like][axis];
  }

  int64_t count() const {
    int64_t total = 1;
    for (int axis = 0; axis < rank; axis++) total *= shape[axis];
    return total;
  }
  // A run is the elements along the innermost axis.
  int64_t run_length() const { return rank == 0 ? 1 : shape[rank - 1]; }
  int64_t run_stride(int operand) const { return rank == 0 ? 0 : strides[operand][rank - 1]; }

  // Returns the offset of element number `index`, in row-major order, in one operand.
  int64_t offset(int operand, int64_t index) const {
    int64_t result = 0;
    for (int axis = rank - 1; axis > 0; axis--) {
      result += index % shape[axis] * strides[operand][axis];
      index /= shape[axis];
    }
    return rank == 0 ? 0 : result + index * strides[operand][0];
  }

  // The same for every operand.
  void find_offsets(int64_t index, int64_t (&offsets)[operands]) const {
    for (int64_t &offset : offsets) offset = 0;
    for (int axis = rank - 1; axis >= 0; axis--) {
      int64_t along = index % shape[axis];
      index /= shape[axis];
      for (int operand = 0; operand < operands; operand++) offsets[operand] += along * strides[operand][axis];
    }
  }

private:
  void clear() {
    std::fill_n(shape, rank, int64_t(0));
    for (auto &operand_strides : strides) std::fill_n(operand_strides, rank, int64_t(0));
  }
};

// Calls use(offsets, first, length) for the runs that make up the elements [begin, end), in order: `first` is the
// number of the run's first element, `offsets` its offset in each operand.
template <int operands, class Use>
void for_each_run(const Nest<operands> &nest, int64_t begin, int64_t end, Use &&use) {
  int64_t length = nest.run_length();
  for (int64_t first = begin; first < end;) {
    int64_t offsets[operands];
    nest.find_offsets(first, offsets);
    int64_t part = std::min(end - first, length - first % length);
    use(offsets, first, part);
    first += part;
  }
}

} // namespace orchard
