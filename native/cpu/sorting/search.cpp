// The function "searchSorted": positions of values among sorted elements.
#include "search.h"

#include "../functions.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>

using namespace orchard;

namespace {

void search_sorted(const SearchSortedBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const int64_t size = block.size, count = block.count, lists = block.lists;
  const int64_t width = dtype_sizes[static_cast<int>(dtype)];
  const Extent sorted = Extent(size).along(lists, size), values = Extent(count).along(lists, count);
  const char *from = operands.input(0, dtype, block.offsets[0], sorted);
  const char *wanted = operands.input(1, dtype, block.offsets[1], values);
  int64_t *places = operands.results<int64_t>(2, block.offsets[2], values);
  if (dtype == DType::boolean) fail(ORCHARD_CPU_UNSUPPORTED, "expected sorted numbers, got bools");
  if (values.is_empty()) return;
  if (size == 0) return void(std::fill_n(places, lists * count, int64_t(0)));
  int steps = 1;
  while (int64_t(1) << steps <= size) steps++;
  const auto find = value_searches().find[static_cast<int>(dtype)];
  parallel_for(lists * count, std::max<int64_t>(1, tuning::sorting::search_steps / steps),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end;) {
                   const int64_t list = i / count, number = std::min(end, (list + 1) * count) - i;
                   find({from + list * size * width, size, wanted + i * width, number, block.right}, places + i);
                   i += number;
                 }
               });
}

ORCHARD_FUNCTION("searchSorted", search_sorted, SearchSortedBlock, 3)

} // namespace
