// The records that are sorted: an element's key and its index. No two records are equal, so any sorting algorithm gives
// the stable order.
#pragma once

#include "../block.h"
#include "keys.h"
#include "tuning.h"

#include <algorithm>

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

inline void check_length(int64_t length) {
  if (length > UINT32_MAX)
    fail(ORCHARD_CPU_UNSUPPORTED, "expected slices of at most 2^32 - 1 elements, got " + std::to_string(length));
}

// Returns the key by which elements are sorted, smallest first.
template <class T> inline KeyOf<T> key_of(T element, bool descending) {
  using Key = KeyOf<T>;
  return Key(sort_key(element) ^ (descending ? ~Key(0) : Key(0)));
}

constexpr int digit_bits = 8;

// Moves records in the order of one digit of the key; `starts` has the number of records of each digit.
template <class R, class Count> void radix_pass(const R *in, R *out, int64_t count, int shift, Count *starts) {
  constexpr unsigned mask = (1 << digit_bits) - 1;
  Count next = 0;
  for (int digit = 0; digit < 1 << digit_bits; digit++) {
    const Count size = starts[digit];
    starts[digit] = next;
    next += size;
  }
  for (int64_t i = 0; i < count; i++) out[starts[in[i].key() >> shift & mask]++] = in[i];
}

// Radix sort of keys of at most `bits` bits, from the least significant digit. Digits that all records share are
// skipped. Returns the array with the sorted records.
template <class R> R *radix_sort(R *records, R *other, int64_t count, int bits) {
  constexpr int most_digits = int(sizeof(records->key()));
  constexpr unsigned mask = (1 << digit_bits) - 1;
  const int digits = std::min(most_digits, (bits + digit_bits - 1) / digit_bits);
  uint32_t starts[most_digits][1 << digit_bits];
  for (int digit = 0; digit < digits; digit++) std::fill_n(starts[digit], 1 << digit_bits, 0u);
  for (int64_t i = 0; i < count; i++)
    for (int digit = 0; digit < digits; digit++) starts[digit][records[i].key() >> digit * digit_bits & mask]++;
  for (int digit = 0; digit < digits; digit++) {
    const int shift = digit * digit_bits;
    if (starts[digit][records[0].key() >> shift & mask] == count) continue;
    radix_pass(records, other, count, shift, starts[digit]);
    std::swap(records, other);
  }
  return records;
}

// Sorts the first k records, whose keys have at most `bits` bits. `records` has room for `count` records, and for 2 k.
// A radix sort is stable only for records in the order of their indices, so after nth_element they are sorted by
// comparison.
template <class R> R *sort_records(R *records, int64_t count, int64_t k, int bits) {
  if (k < count / 8) {
    std::nth_element(records, records + k, records + count);
    count = k;
  } else if (count >= tuning::sorting::radix_from) return radix_sort(records, records + count, count, bits);
  std::sort(records, records + count);
  return records;
}

// The keys of a slice, less the smallest: small ranges of integers have short keys.
template <class Key> struct KeyRange {
  Key lowest = ~Key(0), highest = 0;

  void include(Key key) { lowest = std::min(lowest, key), highest = std::max(highest, key); }
  int bits() const {
    int bits = 0;
    while (bits < int(8 * sizeof(Key)) && (highest - lowest) >> bits != 0) bits++;
    return bits;
  }
};

// Calls use(sorted) with the first k records of `length` elements in order; their keys lack the smallest. `space` has
// room for 2 · length records of T.
template <class T, class Use>
void with_sorted(const T *x, int64_t stride, int64_t length, bool descending, int64_t k, Record<T> *space, Use &&use) {
  KeyRange<KeyOf<T>> range;
  for (int64_t i = 0; i < length; i++) range.include(key_of(x[i * stride], descending));
  const int bits = range.bits();
  const auto sort = [&](auto *records) {
    using R = std::remove_pointer_t<decltype(records)>;
    using Key = decltype(records->key());
    for (int64_t i = 0; i < length; i++)
      records[i] = R(Key(key_of(x[i * stride], descending) - range.lowest), uint32_t(i));
    use(const_cast<const R *>(sort_records(records, length, k, bits)));
  };
  if constexpr (std::is_same_v<Record<T>, Wide>)
    if (bits <= 32) return sort(reinterpret_cast<Narrow *>(space));
  sort(space);
}

} // namespace orchard::ORCHARD_ISA
