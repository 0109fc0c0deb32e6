// The function "isin".
#include "membership.h"

#include "../functions.h"
#include "../memory.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>

using namespace orchard;

namespace {

using namespace tuning::sorting;

template <class C> struct Membership {
  const C *others; // without NaN
  int64_t count;
};

template <class T, class C>
void compare_with_each(const T *x, int64_t length, const Membership<C> &among, bool invert, uint8_t *out) {
  for (int64_t first = 0; first < length; first += block_of_members) {
    const int64_t size = std::min(block_of_members, length - first);
    C values[block_of_members];
    uint8_t found[block_of_members] = {};
    for (int64_t i = 0; i < size; i++) values[i] = ORCHARD_ISA::load(x[first + i]);
    for (int64_t other = 0; other < among.count; other++)
      for (int64_t i = 0; i < size; i++) found[i] |= uint8_t(values[i] == among.others[other]);
    for (int64_t i = 0; i < size; i++) out[first + i] = uint8_t(found[i] ^ uint8_t(invert));
  }
}

template <class T, class C>
void search(const T *x, int64_t length, const Membership<C> &among, bool invert, uint8_t *out) {
  for (int64_t i = 0; i < length; i++) {
    const C value = ORCHARD_ISA::load(x[i]);
    const C *first = among.others;
    for (int64_t left = among.count; left > 1;) {
      const int64_t half = left / 2;
      first += first[half] <= value ? half : 0;
      left -= half;
    }
    out[i] = uint8_t(bool(*first == value) ^ invert);
  }
}

// A table of the integers from the smallest to the largest.
template <class T, class C>
void look_up(const T *x, int64_t length, const uint8_t *table, C least, uint64_t range, bool invert, uint8_t *out) {
  for (int64_t i = 0; i < length; i++) {
    const uint64_t place = uint64_t(int64_t(ORCHARD_ISA::load(x[i]))) - uint64_t(int64_t(least));
    out[i] = uint8_t((place < range ? table[place] : 0) ^ uint8_t(invert));
  }
}

template <class T> void find(const IsinBlock &block, const Operands &operands) {
  using C = std::conditional_t<std::is_same_v<T, Bool>, uint8_t, Compute<T>>;
  const int64_t count = block.count, given = block.others;
  const bool invert = block.invert;
  const T *x = operands.inputs<T>(0, block.offsets[0], Extent(count));
  const T *others = operands.inputs<T>(1, block.offsets[1], Extent(given));
  uint8_t *out = operands.results<uint8_t>(2, block.offsets[2], Extent(count));
  if (count == 0) return;
  Scratch<C> numbers(given);
  int64_t known = 0;
  for (int64_t i = 0; i < given; i++) {
    const C value = ORCHARD_ISA::load(others[i]);
    if (value == value) numbers.data()[known++] = value;
  }
  const Membership<C> among{numbers.data(), known};
  const auto in_tasks = [&](auto &&use) {
    parallel_for(count, member_elements, [&](int64_t begin, int64_t end) { use(x + begin, end - begin, out + begin); });
  };
  if (known <= few_others)
    return in_tasks(
        [&](const T *from, int64_t length, uint8_t *to) { compare_with_each(from, length, among, invert, to); });
  if constexpr (std::is_integral_v<C>) {
    const auto [least, most] = std::minmax_element(among.others, among.others + known);
    const C smallest = *least;
    const uint64_t range = uint64_t(int64_t(*most)) - uint64_t(int64_t(smallest)) + 1;
    if (range != 0 && range <= most_per_other * uint64_t(known)) {
      Scratch<uint8_t> table(static_cast<int64_t>(range));
      std::fill_n(table.data(), range, uint8_t(0));
      for (int64_t i = 0; i < known; i++)
        table.data()[uint64_t(int64_t(among.others[i])) - uint64_t(int64_t(smallest))] = 1;
      return in_tasks([&](const T *from, int64_t length, uint8_t *to) {
        look_up(from, length, table.data(), smallest, range, invert, to);
      });
    }
  }
  std::sort(numbers.data(), numbers.data() + known);
  in_tasks([&](const T *from, int64_t length, uint8_t *to) { search(from, length, among, invert, to); });
}

void isin(const IsinBlock &block, Operands operands) {
  with_storage(block.dtype, [&](auto type) { find<typename decltype(type)::type>(block, operands); });
}

ORCHARD_FUNCTION("isin", isin, IsinBlock, 3)

} // namespace
