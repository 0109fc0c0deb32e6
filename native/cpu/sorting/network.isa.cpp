// Batcher's merge exchange (Knuth, The Art of Computer Programming, volume 3, section 5.2.2, algorithm M) on columns: a
// comparison of two elements is done for all slices of a block.
#include "network.h"

#include "records.h"

#include <utility>

namespace orchard::ORCHARD_ISA {
namespace {

// Calls exchange(first, second, count) for comparisons of the elements first + i and second + i, for i < count.
template <class Exchange> inline void merge_exchange(int64_t length, Exchange &&exchange) {
  if (length < 2) return;
  int64_t top = 1;
  while (2 * top < length) top *= 2;
  for (int64_t p = top; p > 0; p /= 2)
    for (int64_t q = top, first = 0, distance = p;; distance = q - p, q /= 2, first = p) {
      for (int64_t i = first; i < length - distance; i += 2 * p)
        exchange(i, i + distance, std::min(p, length - distance - i));
      if (q == p) break;
    }
}

using Words = Vector<int64_t>;

// The lanes of a where all bits of the mask are set, of b where none is.
inline Words chosen(Words mask, Words a, Words b) { return (mask & a) | (~mask & b); }

constexpr uint64_t sign = uint64_t(1) << 63; // turns the order of unsigned words into that of signed ones

// Element k of slice j, at [k * pitch + j], as a signed word: a 32-bit key above its index.
struct NarrowColumns {
  alignas(64) int64_t words[network_elements];

  void set(int64_t at, uint32_t key, int64_t index) { words[at] = int64_t((uint64_t(key) << 32 | index) ^ sign); }
  int32_t index(int64_t at) const { return int32_t(words[at]); }
  bool is_same(int64_t at, int64_t other) const { return uint64_t(words[at] ^ words[other]) >> 32 == 0; }
  bool has_key(int64_t at, uint32_t key) const { return uint64_t(words[at] ^ sign) >> 32 == key; }

  void exchange(int64_t first, int64_t second, int64_t count) {
    int64_t *a = words + first, *b = words + second;
    for (int64_t i = 0; i < count; i += lanes<int64_t>) {
      const Words x = load_vector(a + i), y = load_vector(b + i);
      const Words is_sorted = x < y;
      store_vector<int64_t>(chosen(is_sorted, x, y), a + i);
      store_vector<int64_t>(chosen(is_sorted, y, x), b + i);
    }
  }
};

// 64-bit keys, and their indices in a second array.
struct WideColumns {
  alignas(64) int64_t keys[network_elements];
  alignas(64) int64_t indices[network_elements];

  void set(int64_t at, uint64_t key, int64_t index) { keys[at] = int64_t(key ^ sign), indices[at] = index; }
  int32_t index(int64_t at) const { return int32_t(indices[at]); }
  bool is_same(int64_t at, int64_t other) const { return keys[at] == keys[other]; }
  bool has_key(int64_t at, uint64_t key) const { return keys[at] == int64_t(key ^ sign); }

  void exchange(int64_t first, int64_t second, int64_t count) {
    int64_t *a = keys + first, *b = keys + second, *i = indices + first, *j = indices + second;
    for (int64_t at = 0; at < count; at += lanes<int64_t>) {
      const Words x = load_vector(a + at), y = load_vector(b + at);
      const Words k = load_vector(i + at), l = load_vector(j + at);
      const Words is_sorted = (x < y) | ((x == y) & (k < l));
      store_vector<int64_t>(chosen(is_sorted, x, y), a + at);
      store_vector<int64_t>(chosen(is_sorted, y, x), b + at);
      store_vector<int64_t>(chosen(is_sorted, k, l), i + at);
      store_vector<int64_t>(chosen(is_sorted, l, k), j + at);
    }
  }
};

// Element k of slice j becomes keys[k * pitch + j]. The remaining columns of a unit have
// some of these keys.
template <class T> void gather_keys(const NetworkBlock &block, int64_t pitch, KeyOf<T> *keys) {
  using Key = KeyOf<T>;
  const ShortSlices &slices = block.slices;
  const T *x = reinterpret_cast<const T *>(block.x);
  const int64_t length = slices.length, count = slices.count;
  const Key flip = block.descending ? ~Key(0) : Key(0);
  const auto write = [flip](const T *from, Key *to, int64_t size) {
    for (int64_t i = 0; i < size; i++) to[i] = Key(sort_key(from[i])) ^ flip;
  };
  if (length > 1 && slices.is_dense()) {
    alignas(64) Key rows[network_elements + lanes<Key>];
    write(x + slices.starts[0], rows, count * length);
    std::fill(rows + count * length, rows + pitch * length, rows[0]);
    return to_columns(rows, length, keys, pitch);
  }
  const bool is_side_by_side = slices.is_side_by_side();
  for (int64_t k = 0; k < length; k++) {
    const T *row = x + k * slices.along;
    Key *to = keys + k * pitch;
    if (is_side_by_side) write(row + slices.starts[0], to, count);
    else
      for (int64_t j = 0; j < count; j++) to[j] = Key(sort_key(row[slices.starts[j]])) ^ flip;
    std::fill(to + count, to + pitch, to[0]);
  }
}

template <class T> constexpr KeyOf<T> nan_key = ~KeyOf<T>(0);
template <class T> constexpr bool has_nan = std::is_floating_point_v<Compute<T>>;

// Counts the keys of each slice that are not `excluded`.
template <class Key> void count_others(const Key *keys, int64_t length, int64_t pitch, Key excluded, int32_t *counts) {
  std::fill_n(counts, pitch, 0);
  for (int64_t k = 0; k < length; k++)
    for (int64_t j = 0; j < pitch; j++) counts[j] += keys[k * pitch + j] != excluded ? 1 : 0;
}

template <class Key, class Sorted>
void sort_columns(const Key *keys, int64_t length, int64_t pitch, Key lowest, Sorted &columns) {
  for (int64_t k = 0; k < length; k++)
    for (int64_t j = 0; j < pitch; j++) columns.set(k * pitch + j, keys[k * pitch + j] - lowest, k);
  merge_exchange(length, [&](int64_t first, int64_t second, int64_t count) {
    columns.exchange(first * pitch, second * pitch, count * pitch);
  });
}

// Calls use(columns) for the sorted columns. Integers of a small range are sorted by 32-bit keys.
template <class T, class Use> void with_sorted_columns(const KeyOf<T> *keys, int64_t length, int64_t pitch, Use &&use) {
  using Key = KeyOf<T>;
  const auto use_sorted = [&](auto &columns, Key lowest) {
    sort_columns(keys, length, pitch, lowest, columns);
    use(columns);
  };
  if constexpr (sizeof(Key) < 8) {
    NarrowColumns columns;
    return use_sorted(columns, 0);
  } else if constexpr (!has_nan<T>) {
    const auto [lowest, highest] = std::minmax_element(keys, keys + length * pitch);
    if (*highest - *lowest <= UINT32_MAX) {
      NarrowColumns columns;
      return use_sorted(columns, *lowest);
    }
  }
  WideColumns columns;
  use_sorted(columns, 0);
}

template <class T> void order(const NetworkBlock &block, NetworkOrders &orders) {
  using Key = KeyOf<T>;
  const int64_t length = block.slices.length, pitch = short_pitch(block.slices.count);
  alignas(64) Key keys[network_elements];
  orders.pitch = pitch;
  gather_keys<T>(block, pitch, keys);
  if (has_nan<T>) count_others(keys, length, pitch, block.descending ? Key(0) : nan_key<T>, orders.numbers);
  else std::fill_n(orders.numbers, pitch, int32_t(length));
  with_sorted_columns<T>(keys, length, pitch, [&](const auto &columns) {
    for (int64_t at = 0; at < length * pitch; at++) orders.index[at] = columns.index(at);
  });
}

// Finds the modes of the slices [first, first + short_unit).
template <class T, class Sorted>
void find_modes(const Sorted &columns, int64_t length, int64_t pitch, int64_t first, int32_t *indices) {
  int64_t longest[short_unit] = {}, begin[short_unit] = {}, found[short_unit] = {};
  for (int64_t k = 0; k < length; k++)
    for (int64_t lane = 0; lane < short_unit; lane++) {
      const int64_t at = k * pitch + first + lane;
      bool is_number = true;
      if constexpr (has_nan<T>) is_number = !columns.has_key(at, nan_key<T>);
      const bool goes_on = columns.is_same(at, k == 0 ? at : at - pitch) & is_number;
      begin[lane] = goes_on ? begin[lane] : k;
      const bool is_longer = k - begin[lane] + 1 > longest[lane];
      longest[lane] = is_longer ? k - begin[lane] + 1 : longest[lane];
      found[lane] = is_longer ? columns.index(at) : found[lane];
    }
  for (int64_t lane = 0; lane < short_unit; lane++) indices[first + lane] = int32_t(found[lane]);
}

template <class T> void mode(const NetworkBlock &block, int32_t *indices) {
  const int64_t length = block.slices.length, pitch = short_pitch(block.slices.count);
  if (length == 1) return void(std::fill_n(indices, block.slices.count, 0));
  alignas(64) KeyOf<T> keys[network_elements];
  gather_keys<T>(block, pitch, keys);
  with_sorted_columns<T>(keys, length, pitch, [&](const auto &columns) {
    for (int64_t first = 0; first < pitch; first += short_unit) find_modes<T>(columns, length, pitch, first, indices);
  });
}

template <int... dtype> constexpr Networks all(std::integer_sequence<int, dtype...>) {
  return {{order<Storage<DType(dtype)>>...}, {mode<Storage<DType(dtype)>>...}};
}

} // namespace

extern const Networks networks = all(std::make_integer_sequence<int, dtype_count>{});

} // namespace orchard::ORCHARD_ISA
