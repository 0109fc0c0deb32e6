// The functions "orderStatistic" and "runs", which read sorted elements. NaN equals no element, and is sorted last.
#include "runs.h"

#include "../functions.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>

using namespace orchard;
using namespace orchard::ORCHARD_ISA;

namespace {

using tuning::sorting::run_elements;

// Returns the position of the last element of the first longest run.
template <class T> int64_t end_of_longest(const T *x, int64_t stride, int64_t length) {
  int64_t longest = 1, end = 0, begin = 0;
  auto before = load(x[0]);
  for (int64_t i = 1; i < length; i++) {
    const auto element = load(x[i * stride]);
    begin = element == before ? begin : i;
    before = element;
    const bool is_longer = i - begin + 1 > longest;
    longest = is_longer ? i - begin + 1 : longest;
    end = is_longer ? i : end;
  }
  return end;
}

template <class T> int64_t count_numbers(const T *x, int64_t stride, int64_t length) {
  const auto is_nan = [&](int64_t i) { return load(x[i * stride]) != load(x[i * stride]); };
  while (length > 0 && is_nan(length - 1)) length--;
  return length;
}

template <class T> int64_t place_of(int64_t statistic, const T *x, int64_t stride, int64_t length) {
  if (statistic == order_mode) return end_of_longest(x, stride, length);
  const int64_t numbers = count_numbers(x, stride, length);
  if (statistic == order_median) return numbers < length ? numbers : (length - 1) / 2;
  return std::max<int64_t>(numbers - 1, 0) / 2;
}

void order_statistic(const OrderStatisticBlock &block, Operands operands) {
  const Slices<2> slices(block.slices);
  const DType dtype = block.dtype;
  const int64_t statistic = block.statistic;
  if (statistic < 0 || statistic >= order_statistics)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected an order statistic, got the number " + std::to_string(statistic));
  const char *sorted = operands.input(0, dtype, slices.offsets[0], slices.extent(0));
  const int64_t *indices = operands.inputs<int64_t>(1, slices.offsets[1], slices.extent(1));
  int64_t *found = operands.results<int64_t>(2, block.offset, Extent(slices.count()));
  if (slices.is_empty()) return;
  parallel_for(slices.count(), std::max<int64_t>(1, run_elements / slices.length), [&](int64_t begin, int64_t end) {
    with_storage(dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      for (int64_t slice = begin; slice < end; slice++) {
        int64_t offsets[2];
        slices.find_offsets(slice, offsets);
        const T *first = reinterpret_cast<const T *>(sorted) + offsets[0];
        const int64_t at = place_of(statistic, first, slices.along[0], slices.length);
        found[slice] = indices[offsets[1] + at * slices.along[1]];
      }
    });
  });
}

template <class T> int64_t find_runs(const T *x, int64_t stride, int64_t count, T *firsts, int64_t *begins) {
  int64_t runs = 0;
  for (int64_t i = 0; i < count; i++) {
    const bool begins_run = i == 0 || load(x[i * stride]) != load(x[(i - 1) * stride]);
    firsts[runs] = x[i * stride]; // overwritten unless a run begins
    begins[runs] = i;
    runs += begins_run ? 1 : 0;
  }
  return runs;
}

// found[0] = the number of runs
void runs(const RunsBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const int64_t count = block.count, stride = block.stride;
  const char *x = operands.input(0, dtype, block.offsets[0], Extent().along(count, stride));
  char *firsts = operands.result(1, dtype, block.offsets[1], Extent(count));
  int64_t *begins = operands.results<int64_t>(2, block.offsets[2], Extent(count));
  double *found = operands.results<double>(3, 0, Extent());
  with_storage(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    *found = double(find_runs(reinterpret_cast<const T *>(x), stride, count, reinterpret_cast<T *>(firsts), begins));
  });
}

ORCHARD_FUNCTION("orderStatistic", order_statistic, OrderStatisticBlock, 3)
ORCHARD_FUNCTION("runs", runs, RunsBlock, 4)

} // namespace
