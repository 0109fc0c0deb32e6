// A loop nest over operands of any strides, cut into dense rows for kernels that know nothing of strides.
#pragma once

#include "../functions.h"
#include "../nest.h"
#include "row.h"

#include <cstdint>
#include <functional>

namespace orchard {

constexpr int max_operands = 4;

// A loop as a block has it: the result's shape, and for each operand, the result last, its strides along it and its
// offset. Stride 0 repeats.
template <int operands> struct LoopBlock {
  NestBlock<operands> nest;
  Whole offsets[operands];
};

// The same where a row has to know the number of its first element.
using PlacedRow = std::function<void(const void *const *inputs, void *out, int64_t start, int64_t count)>;

struct LoopOperand {
  char *first; // element (0, …, 0)
  int64_t strides[max_rank];
  int64_t size; // of an element, in bytes
};

class Loop {
public:
  // `sizes` are those of the elements of the call's first operands, the result's last. Axes of one element are dropped,
  // and adjacent axes that are one run in every operand are merged, so that contiguous operands have one axis.
  template <int operands>
  Loop(const LoopBlock<operands> &block, const int64_t *sizes, const Operands &buffers) : operands_(operands) {
    static_assert(operands <= max_operands);
    const Nest<operands> nest(block.nest);
    for (int operand = 0; operand < operands; operand++) {
      const int64_t size = sizes[operand], offset = block.offsets[operand];
      const Extent extent = nest.extent(operand);
      operand_[operand].size = size;
      operand_[operand].first = operand == operands - 1
                                    ? buffers.result(operand, size, offset, extent)
                                    : const_cast<char *>(buffers.input(operand, size, offset, extent));
    }
    for (int axis = 0; axis < nest.rank; axis++) {
      int64_t strides[operands];
      for (int operand = 0; operand < operands; operand++) strides[operand] = nest.strides[operand][axis];
      add_axis(nest.shape[axis], strides);
    }
  }

  int64_t count() const { return count_; }

  // Calls `row` for stretches that make up the result, on several threads.
  void run(ElementwiseRow row) const;
  // As above; elements are numbered row-major. Stretches begin at multiples of 4.
  void run_placed(const PlacedRow &row) const;

  // Whether `test(elements, count)` holds for some stretch of an operand.
  using Test = bool (*)(const void *elements, int64_t count);
  bool any(int operand, Test test) const;

private:
  enum class Layout { dense, constant, strided };
  enum class Target {
    in_place,
    streamed,
    scattered
  }; // where a row writes: into the result, or into a buffer on its way
  struct View;

  void add_axis(int64_t size, const int64_t *strides);
  Layout layout_of(const LoopOperand &operand) const;
  Target target_of(const View &result) const;
  void run_part(const PlacedRow &row, const View *views, int64_t begin, int64_t end) const;
  template <class Move> void move(const View &view, int64_t start, int64_t length, Move move) const;
  void gather(const View &view, int64_t start, int64_t length, char *dense) const;
  void scatter(const View &view, int64_t start, int64_t length, const char *dense) const;

  int rank_ = 0;
  int operands_;
  int64_t count_ = 1;
  int64_t shape_[max_rank];
  LoopOperand operand_[max_operands];
};

} // namespace orchard
