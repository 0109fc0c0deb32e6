// Searches for several values at once, without branches, which would be mispredicted.
#include "search.h"

#include <algorithm>
#include <utility>

namespace orchard::ORCHARD_ISA {
namespace {

constexpr int at_once = 16;

// Bisection between `low` and `high`; the indices are as wide as the values, so that vectors of both have the same
// number of lanes.
template <bool is_right, class Index, class T>
inline void bisect(const T *sorted, Index size, int steps, const Compute<T> (&values)[at_once],
                   Index (&places)[at_once]) {
  alignas(64) Index high[at_once];
  for (Index &end : high) end = size;
  for (int step = 0; step < steps; step++)
    for (int i = 0; i < at_once; i++) {
      const Index middle = Index((places[i] + high[i]) / 2);
      const Compute<T> element = load(sorted[middle < size - 1 ? middle : size - 1]);
      const bool is_after = is_right ? element > values[i] : element >= values[i], is_open = places[i] < high[i];
      places[i] = (is_open & !is_after) ? middle + 1 : places[i];
      high[i] = (is_open & is_after) ? middle : high[i];
    }
}

template <bool is_right, class Index, class T> void find_all(const ValueSearch &search, int64_t *out) {
  const T *sorted = reinterpret_cast<const T *>(search.sorted), *wanted = reinterpret_cast<const T *>(search.wanted);
  int steps = 1;
  while (int64_t(1) << steps <= search.size) steps++;
  for (int64_t first = 0; first < search.count; first += at_once) {
    const int64_t part = std::min<int64_t>(at_once, search.count - first);
    alignas(64) Compute<T> values[at_once] = {};
    alignas(64) Index places[at_once] = {};
    for (int64_t i = 0; i < part; i++) values[i] = load(wanted[first + i]);
    bisect<is_right>(sorted, Index(search.size), steps, values, places);
    for (int64_t i = 0; i < part; i++) out[first + i] = int64_t(places[i]);
  }
}

template <class Index, class T> void find_on_side(const ValueSearch &search, int64_t *places) {
  if (search.is_right) find_all<true, Index, T>(search, places);
  else find_all<false, Index, T>(search, places);
}

template <class T> void find(const ValueSearch &search, int64_t *places) {
  constexpr bool is_wide = sizeof(Compute<T>) == 8;
  if (is_wide || search.size > INT32_MAX / 2) find_on_side<int64_t, T>(search, places);
  else find_on_side<int32_t, T>(search, places);
}

template <int... dtype> constexpr ValueSearches all(std::integer_sequence<int, dtype...>) {
  return {{find<Storage<DType(dtype)>>...}};
}

} // namespace

extern const ValueSearches value_searches = all(std::make_integer_sequence<int, dtype_count>{});

} // namespace orchard::ORCHARD_ISA
