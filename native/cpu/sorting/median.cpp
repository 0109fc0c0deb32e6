// The function "median": selects an element by its position in linear time, without sorting.
#include "median.h"

#include "../functions.h"
#include "../indexing/scratch_slots.h"
#include "../parallel.h"
#include "entries.h"
#include "network.h"
#include "tuning.h"

#include <algorithm>

using namespace orchard;
using namespace orchard::ORCHARD_ISA;

namespace {

using tuning::sorting::median_elements;

// The element to select.
struct Position {
  int64_t kth;
  bool skips_nan;

  // Its position in ascending order, in a slice with this many numbers; NaN come after the numbers.
  int64_t among(int64_t numbers, int64_t length) const {
    if (kth > 0) return kth - 1;
    if (skips_nan) return std::max<int64_t>(numbers - 1, 0) / 2;
    return numbers < length ? numbers : (length - 1) / 2;
  }
};

// Returns the element's index. NaN has the largest key.
template <class Entry, class T>
int64_t index_of(const T *x, int64_t stride, int64_t length, Position position, Entry *entries) {
  int64_t numbers = 0;
  for (int64_t i = 0; i < length; i++) {
    const T element = x[i * stride];
    const auto value = load(element);
    set(entries[i], uint64_t(sort_key(element)), uint64_t(i));
    numbers += value == value ? 1 : 0;
  }
  Entry *found = entries + position.among(numbers, length);
  std::nth_element(entries, found, entries + length);
  return index_in(*found);
}

struct Selected {
  const char *x;
  char *values;
  int64_t *indices;
};

template <class T>
void select_block(const Slices<1> &slices, DType dtype, Position position, const Selected &to, int64_t begin,
                  int64_t count) {
  int64_t starts[1][most_short_slices];
  NetworkOrders orders;
  find_starts(slices.nest, begin, count, starts);
  const ShortSlices block{slices.length, count, slices.along[0], starts[0]};
  orchard::networks().order[static_cast<int>(dtype)]({to.x, block, false}, orders);
  for (int64_t j = 0; j < count; j++) {
    const int64_t at = position.among(orders.numbers[j], slices.length), index = orders.index[at * orders.pitch + j];
    to.indices[begin + j] = index;
    reinterpret_cast<T *>(to.values)[begin + j] =
        reinterpret_cast<const T *>(to.x)[starts[0][j] + index * slices.along[0]];
  }
}

template <class T>
void select_each(const Slices<1> &slices, Position position, const Selected &to, int64_t begin, int64_t end,
                 uint64_t *entries) {
  constexpr bool is_narrow = sizeof(T) < 8;
  const int64_t along = slices.along[0], length = slices.length;
  for (int64_t slice = begin; slice < end; slice++) {
    const T *first = reinterpret_cast<const T *>(to.x) + slices.nest.offset(0, slice);
    const int64_t at = is_narrow && length <= int64_t(UINT32_MAX)
                           ? index_of(first, along, length, position, entries)
                           : index_of(first, along, length, position, reinterpret_cast<KeyAndIndex *>(entries));
    reinterpret_cast<T *>(to.values)[slice] = first[at * along];
    to.indices[slice] = at;
  }
}

void median(const MedianBlock &block, Operands operands) {
  const Slices<1> slices(block.slices);
  const DType dtype = block.dtype;
  const Position position{block.kth, block.skips_nan};
  const int64_t length = slices.length, count = slices.count();
  const Selected to{operands.input(0, dtype, slices.offsets[0], slices.extent(0)),
                    operands.result(1, dtype, block.offsets[0], Extent(count)),
                    operands.results<int64_t>(2, block.offsets[1], Extent(count))};
  if (slices.is_empty()) return;
  if (position.kth < 0 || position.kth > length)
    fail(ORCHARD_CPU_INVALID_ARGUMENT,
         "expected a position from 1 to " + std::to_string(length) + ", or 0, got " + std::to_string(position.kth));
  with_storage(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if (are_for_network(length, count))
      return for_network_blocks(length, count, [&](int64_t begin, int64_t in_block) {
        select_block<T>(slices, dtype, position, to, begin, in_block);
      });
    const int64_t in_task = std::max<int64_t>(1, median_elements / length);
    ScratchSlots<uint64_t> slots((count + in_task - 1) / in_task, scratch_product({length, 2}));
    parallel_for(count, in_task, [&](int64_t begin, int64_t end) {
      slots.with([&](uint64_t *entries) { select_each<T>(slices, position, to, begin, end, entries); });
    });
  });
}

ORCHARD_FUNCTION("median", median, MedianBlock, 3)

} // namespace
