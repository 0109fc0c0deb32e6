// The first `k` elements of each line along an axis, in order, with their indices.
//
// Equal elements stay in the order of their indices, so that the result is the one that there is. An element is sorted as a record of its
// key and its index: no two are equal, and any method gives the stable order.
#include "../indexing/nest.h"
#include "../indexing/scratch_slots.h"
#include "keys.h"

#include <array>

using namespace orchard;
using namespace orchard::ORCHARD_ISA;

namespace {
enum Operand { from_x, to_values, to_indices };

struct Sort {
  int64_t length; // of a line
  int64_t k;
  bool descending;
  int64_t strides[3]; // along the line
  Nest<3> lines;
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
constexpr int64_t radix_from = 1024; // shorter lines are sorted by comparison

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

template <class T> void sort_line(const Sort &sort, const T *x, T *values, int64_t *indices, Record<KeyOf<T>> *records) {
  using Key = KeyOf<T>;
  Key turn = sort.descending ? ~Key(0) : Key(0);
  for (int64_t i = 0; i < sort.length; i++)
    records[i] = {Key(sort_key(x[i * sort.strides[from_x]]) ^ turn), uint32_t(i)};
  const auto *sorted = sort_records(records, sort.length, sort.k);
  for (int64_t i = 0; i < sort.k; i++) {
    int64_t index = sorted[i].index();
    values[i * sort.strides[to_values]] = x[index * sort.strides[from_x]];
    indices[i * sort.strides[to_indices]] = index;
  }
}

template <class T> void sort_lines(const Sort &sort, const T *x, T *values, int64_t *indices) {
  using R = Record<KeyOf<T>>;
  int64_t lines = sort.lines.count();
  int64_t grain = std::max<int64_t>(1, (1 << 11) / (sort.length + 1));
  ScratchSlots<R> slots((lines + grain - 1) / grain, 2 * sort.length);
  parallel_for(lines, grain, [&](int64_t begin, int64_t end) {
    slots.with([&](R *records) {
      for (int64_t line = begin; line < end; line++) {
        int64_t places[3];
        find_places(sort.lines, line, places);
        sort_line(sort, x + places[from_x], values + places[to_values], indices + places[to_indices], records);
      }
    });
  });
}
} // namespace

int32_t orchard_cpu_sort(const double *block, const void *x, void *values, void *indices) {
  return guarded([&] {
    BlockReader reader(block);
    DType dtype = reader.dtype();
    const char *source = element(x, dtype, reader.whole());
    char *sorted = element(values, dtype, reader.whole());
    int64_t *places = reinterpret_cast<int64_t *>(element(indices, DType::int64, reader.whole()));
    Sort sort;
    sort.length = reader.whole();
    sort.k = reader.whole();
    sort.descending = reader.whole() != 0;
    for (int64_t &stride : sort.strides) stride = reader.whole();
    sort.lines = read_nest<3>(reader);
    if (sort.length > UINT32_MAX) fail(ORCHARD_CPU_UNSUPPORTED, "a line has more than 2^32 - 1 elements");
    with_storage(dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      sort_lines(sort, reinterpret_cast<const T *>(source), reinterpret_cast<T *>(sorted), places);
    });
  });
}
