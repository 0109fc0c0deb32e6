// A loop nest over operands of any strides, split into dense rows, so that kernels need not handle strides.
#pragma once

// A loop nest as stored in a block: the result's shape, and the strides and offset of each operand, the result last.
// Stride 0 broadcasts elements.
#include "../../.build/generated/loop_block.h"

#include "../functions.h"
#include "../nest.h"
#include "row.h"
#include "tuning.h"

#include <cstdint>
#include <functional>

namespace orchard {

constexpr int max_operands = 4;

// Like ElementwiseRow, but also receives the row-major number of its first element.
using PlacedRow = std::function<void(const void *const *inputs, void *out, int64_t start, int64_t count)>;

struct LoopOperand {
  char *first; // element (0, …, 0)
  int64_t strides[max_rank];
  int64_t size; // of an element in bytes
};

using tuning::elementwise::usual_grain;

class Loop {
public:
  // `sizes` has the element size of each operand in bytes, the result's last. Axes of length 1 are dropped. Adjacent
  // axes are merged if they form one run in every operand, so contiguous operands have a single axis.
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

  // Calls `row` on several threads for pieces that together cover the result. The pieces have equal sizes, at most
  // about `most` elements.
  void run(ElementwiseRow row, int64_t most = usual_grain) const;
  // Calls `row` on several threads for pieces that together cover the result, and passes the row-major number of each
  // piece's first element, a multiple of 4.
  void run_placed(const PlacedRow &row) const;

  // Returns whether `test(elements, count)` is true for a piece of an operand.
  using Test = bool (*)(const void *elements, int64_t count);
  bool any(int operand, Test test) const;

private:
  enum class Layout { dense, constant, strided };
  enum class Target {
    in_place,
    streamed,
    scattered
  }; // whether rows write to the result directly, or to a buffer first
  struct View;
  struct Blocks;
  struct Block;

  void add_axis(int64_t size, const int64_t *strides);
  Layout layout_of(const LoopOperand &operand) const;
  Target target_of(const View &result) const;
  void run_all(const PlacedRow &row, bool starts_anywhere, int64_t most) const;
  void run_part(const PlacedRow &row, const View *views, int64_t begin, int64_t end) const;
  bool goes_by_runs(const View *views) const;
  void run_by_runs(const PlacedRow &row, const View *views, int64_t begin, int64_t end) const;
  int closest_axis(const View &view) const;
  bool find_blocks(const View *views, Blocks &blocks) const;
  Block block_at(const Blocks &blocks, int64_t number) const;
  Block next_block(const Blocks &blocks, const Block &before, int64_t number) const;
  void transpose(const View &view, const Blocks &blocks, const Block &block, int64_t place, char *dense) const;
  void run_by_blocks(const PlacedRow &row, const View *views, const Blocks &blocks) const;
  using Buffers = char (*)[tuning::elementwise::loop_block_bytes]; // a block of each operand
  void run_dense_blocks(const PlacedRow &row, const View *views, const Blocks &blocks, int64_t begin, int64_t end,
                        Buffers buffers) const;
  void run_parted_blocks(const PlacedRow &row, const View *views, const Blocks &blocks, int64_t begin, int64_t end,
                         Buffers buffers) const;
  static bool is_repeated(const View &view);
  int64_t period_of(const LoopOperand &operand) const;
  template <class Move> void move(const View &view, int64_t start, int64_t length, Move move) const;
  void gather(const View &view, int64_t start, int64_t length, char *dense) const;
  template <class T> void gather_elements(const View &view, int64_t start, int64_t length, char *dense) const;
  template <class T> int64_t gather_short(const View &view, int64_t start, int64_t length, char *dense) const;
  void scatter(const View &view, int64_t start, int64_t length, const char *dense) const;

  int rank_ = 0;
  int operands_;
  int64_t count_ = 1;
  int64_t shape_[max_rank];
  LoopOperand operand_[max_operands];
};

} // namespace orchard
