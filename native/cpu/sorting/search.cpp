// The function "searchSorted": positions of values among sorted elements.
#include "../functions.h"
#include "../parallel.h"
#include "search.h"

#include <algorithm>

using namespace orchard;
using namespace orchard::ORCHARD_ISA;

namespace {

constexpr int64_t task_steps = 1 << 14; // comparisons, about 20 µs

// Returns how many elements, from the first on, come before the value. Elements that equal it do if `is_right`.
// Comparisons with NaN are false: a NaN comes before everything, and everything before a NaN.
template <bool is_right, class T, class Value> int64_t place_of(const T *sorted, int64_t size, Value value) {
  int64_t low = 0, high = size;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    const Value element = load(sorted[middle]);
    const bool is_after = is_right ? element > value : element >= value;
    low = is_after ? low : middle + 1;
    high = is_after ? middle : high;
  }
  return low;
}

template <class T>
void search(const SearchSortedBlock &block, const T *sorted, const T *values, int64_t *places, int64_t lists) {
  const int64_t size = block.size, count = block.count;
  const bool is_right = block.right;
  int64_t steps = 1;
  while (int64_t(1) << steps <= size) steps++;
  parallel_for(lists * count, std::max<int64_t>(1, task_steps / steps), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const T *list = sorted + i / count * size;
      const auto value = load(values[i]);
      places[i] = is_right ? place_of<true>(list, size, value) : place_of<false>(list, size, value);
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
