// The function "median": selects the middle element in linear time, without sorting.
#include "median.h"

#include "../functions.h"
#include "../indexing/scratch_slots.h"
#include "../parallel.h"
#include "entries.h"
#include "tuning.h"

#include <algorithm>

using namespace orchard;
using namespace orchard::ORCHARD_ISA;

namespace {

using tuning::sorting::median_elements;

// Returns the index of the middle element. NaN has the largest key.
template <class Entry, class T>
int64_t middle_of(const T *x, int64_t stride, int64_t length, bool skips_nan, Entry *entries) {
  int64_t numbers = 0, first_nan = -1;
  for (int64_t i = 0; i < length; i++) {
    const T element = x[i * stride];
    const auto value = load(element);
    const bool is_number = value == value;
    set(entries[i], uint64_t(sort_key(element)), uint64_t(i));
    numbers += is_number ? 1 : 0;
    if (!is_number && first_nan < 0) first_nan = i;
  }
  if (!skips_nan && first_nan >= 0) return first_nan;
  Entry *middle = entries + std::max<int64_t>(numbers - 1, 0) / 2;
  std::nth_element(entries, middle, entries + length);
  return index_in(*middle);
}

void median(const MedianBlock &block, Operands operands) {
  const Slices<1> slices(block.slices);
  const DType dtype = block.dtype;
  const bool skips_nan = block.skips_nan;
  const int64_t length = slices.length, count = slices.count();
  const char *x = operands.input(0, dtype, slices.offsets[0], slices.extent(0));
  char *values = operands.result(1, dtype, block.offsets[0], Extent(count));
  int64_t *indices = operands.results<int64_t>(2, block.offsets[1], Extent(count));
  if (slices.is_empty()) return;
  const int64_t in_task = std::max<int64_t>(1, median_elements / length);
  const bool is_short = dtype_sizes[static_cast<int>(dtype)] < 8 && length <= int64_t(UINT32_MAX);
  ScratchSlots<uint64_t> slots((count + in_task - 1) / in_task, scratch_product({length, is_short ? 1 : 2}));
  parallel_for(count, in_task, [&](int64_t begin, int64_t end) {
    slots.with([&](uint64_t *entries) {
      with_storage(dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        for (int64_t slice = begin; slice < end; slice++) {
          const T *first = reinterpret_cast<const T *>(x) + slices.nest.offset(0, slice);
          const int64_t at =
              is_short ? middle_of(first, slices.along[0], length, skips_nan, entries)
                       : middle_of(first, slices.along[0], length, skips_nan, reinterpret_cast<KeyAndIndex *>(entries));
          reinterpret_cast<T *>(values)[slice] = first[at * slices.along[0]];
          indices[slice] = at;
        }
      });
    });
  });
}

ORCHARD_FUNCTION("median", median, MedianBlock, 3)

} // namespace
