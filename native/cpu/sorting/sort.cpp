// The function "sort".
//
// Equal elements stay in the order of their indices, so that there is one result. An element is sorted as a record of
// its key and its index: no two are equal, and any method gives the stable order.
#include "sort.h"

#include "../functions.h"
#include "../indexing/scratch_slots.h"
#include "keys.h"

#include <array>

using namespace orchard;
using namespace orchard::ORCHARD_ISA;

namespace {

enum Operand { from_x, to_values, to_indices };

struct Sort {
  Slices<3> slices;
  int64_t count; // of a slice's elements in order, how many are taken
  bool descending;
};

// A 32-bit key above its index in one word; or a 64-bit key beside it.
struct Narrow {
  uint64_t word;
  Narrow() = default;
  Narrow(uint32_t key, uint32_t index) : word(uint64_t(key) << 32 | index) {}
  uint32_t key() const { return uint32_t(word >> 32); }
  uint32_t index() const { return uint32_t(word); }
  bool operator<(const Narrow &other) const { return word < other.word; }
};
struct Wide {
  uint64_t key_;
  uint64_t index_;
  Wide() = default;
  Wide(uint64_t key, uint32_t index) : key_(key), index_(index) {}
  uint64_t key() const { return key_; }
  uint32_t index() const { return uint32_t(index_); }
  bool operator<(const Wide &other) const { return key_ != other.key_ ? key_ < other.key_ : index_ < other.index_; }
};
template <class Key> using Record = std::conditional_t<sizeof(Key) == 8, Wide, Narrow>;

constexpr int digit_bits = 8;
constexpr int64_t radix_from = 1024; // shorter slices are sorted by comparison

// One stable pass by one digit of the key. Returns false where all have the same: nothing is moved.
template <class R> bool radix_pass(const R *in, R *out, int64_t count, int shift) {
  std::array<int64_t, 1 << digit_bits> starts{};
  constexpr unsigned mask = (1 << digit_bits) - 1;
  for (int64_t i = 0; i < count; i++) starts[in[i].key() >> shift & mask]++;
  if (starts[in[0].key() >> shift & mask] == count) return false;
  int64_t next = 0;
  for (int64_t &start : starts) {
    int64_t size = start;
    start = next;
    next += size;
  }
  for (int64_t i = 0; i < count; i++) out[starts[in[i].key() >> shift & mask]++] = in[i];
  return true;
}

// Least digit first. Returns where the sorted records are.
template <class R> R *radix_sort(R *records, R *other, int64_t count) {
  for (int shift = 0; shift < int(8 * sizeof records->key()); shift += digit_bits)
    if (radix_pass(records, other, count, shift)) std::swap(records, other);
  return records;
}

// Puts the first k in order. `records` has room for twice the count.
template <class R> R *sort_records(R *records, int64_t count, int64_t k) {
  if (k < count / 8) {
    std::nth_element(records, records + k, records + count);
    count = k;
  }
  if (count >= radix_from) return radix_sort(records, records + count, count);
  std::sort(records, records + count);
  return records;
}

template <class T> using KeyOf = decltype(sort_key(T{}));

template <class T>
void sort_slice(const Sort &sort, const T *x, T *values, int64_t *indices, Record<KeyOf<T>> *records) {
  using Key = KeyOf<T>;
  const int64_t length = sort.slices.length;
  const auto &along = sort.slices.along;
  Key flip = sort.descending ? ~Key(0) : Key(0);
  for (int64_t i = 0; i < length; i++) records[i] = {Key(sort_key(x[i * along[from_x]]) ^ flip), uint32_t(i)};
  const auto *sorted = sort_records(records, length, sort.count);
  for (int64_t i = 0; i < sort.count; i++) {
    int64_t index = sorted[i].index();
    values[i * along[to_values]] = x[index * along[from_x]];
    indices[i * along[to_indices]] = index;
  }
}

template <class T> void sort_slices(const Sort &sort, const T *x, T *values, int64_t *indices) {
  using R = Record<KeyOf<T>>;
  int64_t slices = sort.slices.count(), length = sort.slices.length;
  int64_t grain = std::max<int64_t>(1, (1 << 11) / (length + 1));
  ScratchSlots<R> slots((slices + grain - 1) / grain, 2 * length);
  parallel_for(slices, grain, [&](int64_t begin, int64_t end) {
    slots.with([&](R *records) {
      for (int64_t slice = begin; slice < end; slice++) {
        int64_t offsets[3];
        sort.slices.find_offsets(slice, offsets);
        sort_slice(sort, x + offsets[from_x], values + offsets[to_values], indices + offsets[to_indices], records);
      }
    });
  });
}

// The first `count` elements of each slice in order, and their indices (int64). NaN counts as larger than all numbers,
// 0 and -0 as equal.
void sort(const SortBlock &block, Operands operands) {
  const Sort call{block.slices, block.count, block.descending};
  const Slices<3> &slices = call.slices;
  if (call.slices.length > UINT32_MAX)
    fail(ORCHARD_CPU_UNSUPPORTED,
         "expected slices of at most 2^32 - 1 elements, got " + std::to_string(call.slices.length));
  if (call.count < 0 || call.count > slices.length)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected up to " + std::to_string(slices.length) +
                                           " elements of a slice in order, got " + std::to_string(call.count));
  int64_t *order =
      operands.results<int64_t>(to_indices, slices.offsets[to_indices], slices.extent(to_indices, call.count));
  with_storage(block.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T *x = operands.inputs<T>(from_x, slices.offsets[from_x], slices.extent(from_x));
    T *values = operands.results<T>(to_values, slices.offsets[to_values], slices.extent(to_values, call.count));
    if (call.count > 0) sort_slices(call, x, values, order);
  });
}

ORCHARD_FUNCTION("sort", sort, SortBlock, 3)

} // namespace
