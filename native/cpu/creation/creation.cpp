// The functions "fill", "range" and "wholeRange".
#include "creation.h"

#include "../functions.h"
#include "../parallel.h"
#include "../tuning.h"

#include <algorithm>

using namespace orchard;

namespace {

using tuning::creation::task_elements;

FillRow fill_row_of(int64_t bytes) {
  int size = 0;
  while (size < 4 && int64_t(1) << size != bytes) size++;
  if (size == 4)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected elements of 1, 2, 4 or 8 bytes, got " + std::to_string(bytes));
  return creations().fill[size];
}

// Fills all elements along the axes from `axis` on.
void fill_axes(FillRow row, const Nest<1> &nest, int axis, char *at, int64_t bytes, uint64_t bits) {
  if (axis >= nest.rank - 1) return row(at, bits, nest.run_length(), nest.rank == 0 ? 1 : nest.run_stride(0));
  for (int64_t index = 0; index < nest.shape[axis]; index++)
    fill_axes(row, nest, axis + 1, at + index * nest.strides[0][axis] * bytes, bytes, bits);
}

void fill(const FillBlock &block, Operands operands) {
  const int64_t bytes = block.bytes;
  const uint64_t bits = block.bits;
  const FillRow row = fill_row_of(bytes);
  const Nest<1> nest = block.nest;
  char *first = operands.result(0, bytes, block.offset, nest.extent(0));
  if (nest.count() == 0) return;
  if (nest.rank != 1) return fill_axes(row, nest, 0, first, bytes, bits);
  const int64_t stride = nest.strides[0][0];
  parallel_for(nest.shape[0], task_elements,
               [&](int64_t begin, int64_t end) { row(first + begin * stride * bytes, bits, end - begin, stride); });
}

// Writes a range to the first operand, which is dense.
template <class Row, class Range>
void write_range(Row *row, const Range &range, DType dtype, int64_t count, int64_t offset, const Operands &operands) {
  if (!row)
    fail(ORCHARD_CPU_UNSUPPORTED,
         std::string("this range has no elements of dtype ") + dtype_names[static_cast<int>(dtype)]);
  char *first = operands.result(0, dtype, offset, Extent(count));
  parallel_for(count, task_elements,
               [&](int64_t begin, int64_t end) { row(range, begin, end, element(first, dtype, begin)); });
}

void range(const RangeBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const FloatRange range{block.start, block.step, block.end, block.forward, block.count};
  write_range(creations().range[static_cast<int>(dtype)], range, dtype, block.count, block.offset, operands);
}

// Checks that the range's numbers and sums fit in 64 bits, and that the divisor is positive.
void check_range(const WholeRange &range, int64_t count) {
  int64_t largest;
  if (range.divisor < 1 || __builtin_mul_overflow(count, range.remainder, &largest))
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected a range whose parts are below 2^63, got a remainder of " +
                                           std::to_string(range.remainder) + " and a divisor of " +
                                           std::to_string(range.divisor));
}

void whole_range(const WholeRangeBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  auto number = [](uint64_t bits) { return static_cast<int64_t>(bits); };
  const WholeRange range{number(block.start), number(block.step), number(block.remainder), number(block.divisor)};
  check_range(range, block.count);
  write_range(creations().whole_range[static_cast<int>(dtype)], range, dtype, block.count, block.offset, operands);
}

ORCHARD_FUNCTION("fill", fill, FillBlock, 1)
ORCHARD_FUNCTION("range", range, RangeBlock, 1)
ORCHARD_FUNCTION("wholeRange", whole_range, WholeRangeBlock, 1)

} // namespace
