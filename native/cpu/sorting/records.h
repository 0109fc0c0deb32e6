// The records that are sorted: an element's key and its index. No two records are equal, so any sorting algorithm gives
// the stable order.
#pragma once

#include "keys.h"
#include "tuning.h"

#include <algorithm>
#include <array>

namespace orchard::ORCHARD_ISA {

template <class T> using KeyOf = decltype(sort_key(T{}));

// A 32-bit key, stored above its index in one word; or a 64-bit key, stored next to its index.
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
template <class T> using Record = std::conditional_t<sizeof(KeyOf<T>) == 8, Wide, Narrow>;

// Returns the key by which elements are sorted, smallest first.
template <class T> inline KeyOf<T> key_of(T element, bool descending) {
  using Key = KeyOf<T>;
  return Key(sort_key(element) ^ (descending ? ~Key(0) : Key(0)));
}

constexpr int digit_bits = 8;

// Does one stable pass over one digit of the key. Returns false, and moves nothing, if all records have the same digit.
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

// Radix sort from the least significant digit. Returns the array with the sorted records.
template <class R> R *radix_sort(R *records, R *other, int64_t count) {
  for (int shift = 0; shift < int(8 * sizeof records->key()); shift += digit_bits)
    if (radix_pass(records, other, count, shift)) std::swap(records, other);
  return records;
}

// Sorts the first k records. `records` has room for `count` records, and for 2 k. A radix sort is stable only for
// records in the order of their indices, so after nth_element they are sorted by comparison.
template <class R> R *sort_records(R *records, int64_t count, int64_t k) {
  if (k < count / 8) {
    std::nth_element(records, records + k, records + count);
    count = k;
  } else if (count >= tuning::sorting::radix_from) return radix_sort(records, records + count, count);
  std::sort(records, records + count);
  return records;
}

} // namespace orchard::ORCHARD_ISA
