#include "select.h"

#include "records.h"
#include "tuning.h"

#include <utility>

namespace orchard::ORCHARD_ISA {
namespace {

using tuning::sorting::select_block;

// Returns whether at least one key of a block is within the limit. Hits are counted in integers as wide as the key, so
// that the vectors of both have the same number of lanes.
template <class T> inline bool has_key_within(const T *x, bool descending, KeyOf<T> limit) {
  using Key = KeyOf<T>;
  const Key flip = descending ? ~Key(0) : Key(0);
  Key within = 0;
  for (int64_t i = 0; i < select_block; i++) within |= Key(Key(sort_key(x[i])) ^ flip) <= limit ? Key(1) : Key(0);
  return within != 0;
}

template <class T> int64_t find(const Search &search, uint32_t *found, int64_t room, int64_t *count) {
  const T *x = reinterpret_cast<const T *>(search.x);
  const KeyOf<T> limit = KeyOf<T>(search.limit);
  int64_t at = search.begin, hits = 0;
  auto look = [&](int64_t index) {
    found[hits] = uint32_t(index);
    hits += key_of(x[index], search.descending) <= limit;
  };
  for (; at + select_block <= search.end && hits + select_block <= room; at += select_block)
    if (has_key_within(x + at, search.descending, limit))
      for (int64_t i = 0; i < select_block; i++) look(at + i);
  for (; at < search.end && hits < room; at++) look(at);
  *count = hits;
  return at;
}

template <int... dtype> constexpr Selections all(std::integer_sequence<int, dtype...>) {
  return {{find<Storage<DType(dtype)>>...}};
}

} // namespace

extern const Selections selections = all(std::make_integer_sequence<int, dtype_count>{});

} // namespace orchard::ORCHARD_ISA
