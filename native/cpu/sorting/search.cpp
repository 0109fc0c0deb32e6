// The function "searchSorted": positions of values among sorted elements.
#include "../functions.h"
#include "../parallel.h"
#include "search.h"
#include "tuning.h"

#include <algorithm>

using namespace orchard;
using namespace orchard::ORCHARD_ISA;

namespace {

using tuning::sorting::search_steps;

// Returns the number of leading elements that come before the value; elements equal to it count if `is_right`.
// Comparisons with NaN are false, so a NaN comes before everything, and everything comes before a NaN.
//
// Searches for several values at once, so that their loads overlap, and without branches, which would be mispredicted.
template <bool is_right, int values, class T>
void find_places(const T *sorted, int64_t size, int steps, const T *wanted, int64_t *places) {
  int64_t low[values] = {}, high[values];
  Compute<T> value[values];
  for (int i = 0; i < values; i++) high[i] = size, value[i] = load(wanted[i]);
  for (int step = 0; step < steps; step++) {
    for (int i = 0; i < values; i++) {
      const int64_t middle = (low[i] + high[i]) / 2;
      const Compute<T> element = load(sorted[std::min(middle, size - 1)]);
      const bool is_after = is_right ? element > value[i] : element >= value[i], is_open = low[i] < high[i];
      low[i] += (middle + 1 - low[i]) & -int64_t(is_open & !is_after);
      high[i] += (middle - high[i]) & -int64_t(is_open & is_after);
    }
  }
  for (int i = 0; i < values; i++) places[i] = low[i];
}

template <bool is_right, class T>
void find_all(const T *sorted, int64_t size, int steps, const T *wanted, int64_t *places, int64_t count) {
  constexpr int at_once = 8;
  int64_t i = 0;
  for (; i + at_once <= count; i += at_once)
    find_places<is_right, at_once>(sorted, size, steps, wanted + i, places + i);
  for (; i < count; i++) find_places<is_right, 1>(sorted, size, steps, wanted + i, places + i);
}

template <class T>
void search(const SearchSortedBlock &block, const T *sorted, const T *values, int64_t *places, int64_t lists) {
  const int64_t size = block.size, count = block.count;
  const bool is_right = block.right;
  if (size == 0) return void(std::fill_n(places, lists * count, int64_t(0)));
  int steps = 1;
  while (int64_t(1) << steps <= size) steps++;
  parallel_for(lists * count, std::max<int64_t>(1, search_steps / steps), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
      const int64_t list = i / count, number = std::min(end, (list + 1) * count) - i;
      const T *from = sorted + list * size;
      if (is_right) find_all<true>(from, size, steps, values + i, places + i, number);
      else find_all<false>(from, size, steps, values + i, places + i, number);
      i += number;
    }
  });
}

void search_sorted(const SearchSortedBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const int64_t size = block.size, count = block.count, lists = block.lists;
  const Extent sorted = Extent(size).along(lists, size), values = Extent(count).along(lists, count);
  const char *from = operands.input(0, dtype, block.offsets[0], sorted);
  const char *wanted = operands.input(1, dtype, block.offsets[1], values);
  int64_t *places = operands.results<int64_t>(2, block.offsets[2], values);
  if (values.is_empty()) return;
  with_storage(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_same_v<T, Bool>) fail(ORCHARD_CPU_UNSUPPORTED, "expected sorted numbers, got bools");
    else search(block, reinterpret_cast<const T *>(from), reinterpret_cast<const T *>(wanted), places, lists);
  });
}

ORCHARD_FUNCTION("searchSorted", search_sorted, SearchSortedBlock, 3)

} // namespace
