// The functions "findOutOfRange" and "findDescent".
#include "indices.h"

#include "../functions.h"
#include "../parallel.h"
#include "indexing.h"
#include "tuning.h"

#include <atomic>

void orchard::refuse_index(int64_t index, int64_t size) {
  fail(ORCHARD_CPU_INVALID_ARGUMENT,
       "expected indices of at least 0 and less than " + std::to_string(size) + ", got " + std::to_string(index));
}

using namespace orchard;

namespace {

using tuning::indexing::check_elements;

void reduce_to(std::atomic<int64_t> &least, int64_t value) {
  int64_t seen = least.load(std::memory_order_relaxed);
  while (value < seen && !least.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

template <class Index>
void find_in_run(const Nest<1> &nest, const Index *index, int64_t size, int64_t except, int64_t begin, int64_t end,
                 std::atomic<int64_t> &least) {
  int64_t stride = nest.run_stride(0);
  for_each_run(nest, begin, end, [&](const int64_t (&offsets)[1], int64_t first, int64_t length) {
    for (int64_t i = 0; i < length; i++) {
      int64_t value = index[offsets[0] + i * stride];
      if (!is_in_range(value, size) && value != except) return reduce_to(least, first + i);
    }
  });
}

// found[0] = the row-major number of the first index that is negative or at least `size`, and is not `except`; -1 if
// there is none.
void find_out_of_range(const FindOutOfRangeBlock &block, Operands operands) {
  const Nest<1> nest = block.nest;
  const int64_t size = block.size, except = block.except;
  std::atomic<int64_t> least{INT64_MAX};
  double *found = operands.results<double>(1, 0, Extent());
  with_indices(operands, 0, block.dtype, block.offset, nest.extent(0), [&](auto *first) {
    parallel_for(nest.count(), check_elements,
                 [&](int64_t begin, int64_t end) { find_in_run(nest, first, size, except, begin, end, least); });
  });
  *found = least == INT64_MAX ? -1.0 : static_cast<double>(least.load());
}

// found[0] = the number of the first invalid offset, or -1 if all are valid. An offset is invalid if it is less than
// the one before it or more than `size`; the first offset must be 0.
void find_descent(const FindDescentBlock &block, Operands operands) {
  const int64_t count = block.count, size = block.size;
  double &found = *operands.results<double>(1, 0, Extent());
  found = -1;
  with_indices(operands, 0, block.dtype, block.offset, Extent(count), [&](auto *offsets) {
    int64_t before = 0;
    for (int64_t i = 0; i < count && found < 0; before = offsets[i++])
      if (offsets[i] < before || offsets[i] > size || (i == 0 && offsets[i] != 0)) found = double(i);
  });
}

ORCHARD_FUNCTION("findOutOfRange", find_out_of_range, FindOutOfRangeBlock, 2)
ORCHARD_FUNCTION("findDescent", find_descent, FindDescentBlock, 2)

} // namespace
