// The function "sort": sorts whole slices, or selects the first elements of each.
#include "sort.h"

#include "../functions.h"
#include "../indexing/scratch_slots.h"
#include "network.h"
#include "records.h"
#include "select.h"
#include "tuning.h"

#include <atomic>
#include <vector>

using namespace orchard;
using namespace orchard::ORCHARD_ISA;

namespace {

using tuning::sorting::least_length;
using tuning::sorting::least_part;
using tuning::sorting::task_elements;

enum Operand { from_x, to_values, to_indices };

struct Sort {
  Slices<3> slices;
  DType dtype;
  int64_t count; // elements of each sorted slice to return
  bool descending;
};

template <class T> struct Slice {
  const T *x;
  T *values;
  int64_t *indices;
};

template <class T> Slice<T> slice_at(const Sort &sort, Slice<T> first, int64_t number) {
  int64_t offsets[3];
  sort.slices.find_offsets(number, offsets);
  return {first.x + offsets[from_x], first.values + offsets[to_values], first.indices + offsets[to_indices]};
}

template <class T, class R> void write(const Sort &sort, const Slice<T> &slice, const R *sorted) {
  const auto &along = sort.slices.along;
  for (int64_t i = 0; i < sort.count; i++) {
    int64_t index = sorted[i].index();
    slice.values[i * along[to_values]] = slice.x[index * along[from_x]];
    slice.indices[i * along[to_indices]] = index;
  }
}

// ---------------------------------------------------------------- whole slices

template <class T> void sort_slice(const Sort &sort, const Slice<T> &slice, Record<T> *records) {
  const auto &slices = sort.slices;
  with_sorted(slice.x, slices.along[from_x], slices.length, sort.descending, sort.count, records,
              [&](const auto *sorted) { write(sort, slice, sorted); });
}

template <class T> void sort_slices(const Sort &sort, const Slice<T> &first) {
  int64_t slices = sort.slices.count(), length = sort.slices.length;
  int64_t grain = std::max<int64_t>(1, (1 << 11) / (length + 1));
  ScratchSlots<Record<T>> slots((slices + grain - 1) / grain, 2 * length);
  parallel_for(slices, grain, [&](int64_t begin, int64_t end) {
    slots.with([&](Record<T> *records) {
      for (int64_t at = begin; at < end; at++) sort_slice(sort, slice_at(sort, first, at), records);
    });
  });
}

// ---------------------------------------------------------------- short slices

template <class T> void sort_block(const Sort &sort, const Slice<T> &first, int64_t begin, int64_t count) {
  const auto &along = sort.slices.along;
  int64_t starts[3][most_short_slices];
  NetworkOrders orders;
  find_starts(sort.slices.nest, begin, count, starts);
  const ShortSlices slices{sort.slices.length, count, along[from_x], starts[from_x]};
  const NetworkBlock block{reinterpret_cast<const char *>(first.x), slices, sort.descending};
  orchard::networks().order[static_cast<int>(sort.dtype)](block, orders);
  const auto write = [&](int64_t i, int64_t j) {
    const int64_t index = orders.index[i * orders.pitch + j];
    first.values[starts[to_values][j] + i * along[to_values]] = first.x[starts[from_x][j] + index * along[from_x]];
    first.indices[starts[to_indices][j] + i * along[to_indices]] = index;
  };
  if (along[to_values] == 1) {
    for (int64_t j = 0; j < count; j++)
      for (int64_t i = 0; i < sort.count; i++) write(i, j);
  } else
    for (int64_t i = 0; i < sort.count; i++)
      for (int64_t j = 0; j < count; j++) write(i, j);
}

template <class T> void sort_short_slices(const Sort &sort, const Slice<T> &first) {
  for_network_blocks(sort.slices.length, sort.slices.count(),
                     [&](int64_t begin, int64_t count) { sort_block(sort, first, begin, count); });
}

// ---------------------------------------------------------------- the first elements of long slices
//
// A slice is divided into parts, whose number depends on its length only. A buffer per part keeps candidates for the
// first k records. When it is full, the first k stay; from then on, only elements that come before the last of these
// are candidates. (A later element with an equal key comes after it.) Parts share the smallest key that the k-th record
// of any part has reached: no record with a greater key is among the slice's first k, so the result does not depend on
// timing. Finally, the first k among the records of all parts are the result.

struct Parts {
  int64_t length, count; // of a part; of parts
  int64_t room;          // for candidates

  explicit Parts(const Sort &sort)
      : length(std::max(least_part, 16 * sort.count)), count((sort.slices.length - 1) / length + 1),
        room(sort.count + std::max(sort.count, std::clamp<int64_t>(sort.slices.length / 16, 1 << 8, 1 << 11))) {}
};

bool takes_few(const Sort &sort) {
  return sort.slices.length >= least_length && sort.count <= sort.slices.length / 8 && sort.slices.along[from_x] == 1;
}

template <class T> struct Candidates {
  Record<T> *records;
  uint32_t *found;
};

// Returns where the indices of a slot are: after its records.
template <class T> Candidates<T> candidates_in(Record<T> *slot, const Parts &parts) {
  return {slot, reinterpret_cast<uint32_t *>(slot + parts.room)};
}

template <class R> void keep_first(R *records, int64_t count, int64_t k) {
  if (count > k) std::nth_element(records, records + k - 1, records + count);
}

// The smallest key that the k-th record of some part has reached.
class Reached {
public:
  static constexpr uint64_t none = ~uint64_t(0);

  uint64_t key() const { return ~inverse_.load(std::memory_order_relaxed); }
  void include(uint64_t key) {
    uint64_t known = inverse_.load(std::memory_order_relaxed);
    while (known < ~key && !inverse_.compare_exchange_weak(known, ~key, std::memory_order_relaxed)) {
    }
  }

private:
  std::atomic<uint64_t> inverse_{0};
};

// Selects the k records of elements [begin, end) that sort first, and writes them in any order. Elements that can no
// longer be among the first k of the whole slice are skipped; records that sort last fill the remaining places.
template <class T>
void select_part(const Sort &sort, const T *x, int64_t begin, int64_t end, const Parts &parts, Reached &reached,
                 Candidates<T> candidates, Record<T> *selected) {
  const Find find = orchard::selections().find[static_cast<int>(sort.dtype)];
  const int64_t k = sort.count;
  int64_t at = begin, count = 0;
  auto add = [&](int64_t index) { candidates.records[count++] = {key_of(x[index], sort.descending), uint32_t(index)}; };
  if (reached.key() == Reached::none)
    for (; at < end && count < parts.room; at++) add(at);
  for (;;) {
    keep_first(candidates.records, count, k);
    count = std::min(count, k);
    uint64_t limit = reached.key(); // an element with an equal key may still come before that record
    if (count == k) {
      const uint64_t last = candidates.records[k - 1].key();
      reached.include(last);
      if (last == 0) break; // nothing can come before
      limit = std::min(limit, last - 1);
    }
    if (at == end) break;
    int64_t hits;
    at = find({reinterpret_cast<const char *>(x), at, end, sort.descending, limit}, candidates.found,
              parts.room - count, &hits);
    for (int64_t i = 0; i < hits; i++) add(candidates.found[i]);
  }
  std::copy_n(candidates.records, count, selected);
  std::fill(selected + count, selected + k, Record<T>(~KeyOf<T>(0), ~uint32_t(0)));
}

template <class T> void select_slices(const Sort &sort, const Slice<T> &first) {
  using R = Record<T>;
  const Parts parts(sort);
  const int64_t slices = sort.slices.count(), length = sort.slices.length, k = sort.count;
  const int64_t room = scratch_product({k, std::max<int64_t>(2, parts.count)}); // sorting needs room for 2 k records
  Scratch<R> selected(scratch_product({slices, room}));
  const int64_t grain = std::max<int64_t>(1, task_elements / length);
  std::vector<Reached> reached(slices);
  ScratchSlots<R> slots((slices * parts.count - 1) / grain + 1,
                        parts.room + parts.room * sizeof(uint32_t) / sizeof(R) + 1);
  parallel_for(slices * parts.count, grain, [&](int64_t begin, int64_t end) {
    slots.with([&](R *slot) {
      for (int64_t at = begin; at < end; at++) {
        const int64_t slice = at / parts.count, part = at % parts.count, from = part * parts.length;
        select_part(sort, slice_at(sort, first, slice).x, from, std::min(length, from + parts.length), parts,
                    reached[slice], candidates_in<T>(slot, parts), selected.data() + slice * room + part * k);
      }
    });
  });
  parallel_for(slices, std::max<int64_t>(1, task_elements / room), [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at++) {
      R *records = selected.data() + at * room;
      keep_first(records, parts.count * k, k);
      std::sort(records, records + k);
      write(sort, slice_at(sort, first, at), records);
    }
  });
}

// Writes the first `count` elements of each sorted slice, and their indices (int64). NaN is greater than all numbers; 0
// and -0 are equal.
void sort(const SortBlock &block, Operands operands) {
  const Sort call{block.slices, block.dtype, block.count, block.descending};
  const Slices<3> &slices = call.slices;
  check_length(slices.length);
  if (call.count < 0 || call.count > slices.length)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected up to " + std::to_string(slices.length) +
                                           " elements of a slice in order, got " + std::to_string(call.count));
  int64_t *order =
      operands.results<int64_t>(to_indices, slices.offsets[to_indices], slices.extent(to_indices, call.count));
  with_storage(call.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T *x = operands.inputs<T>(from_x, slices.offsets[from_x], slices.extent(from_x));
    T *values = operands.results<T>(to_values, slices.offsets[to_values], slices.extent(to_values, call.count));
    if (call.count == 0 || slices.is_empty()) return;
    if (are_for_network(slices.length, slices.count())) sort_short_slices<T>(call, {x, values, order});
    else if (takes_few(call)) select_slices<T>(call, {x, values, order});
    else sort_slices<T>(call, {x, values, order});
  });
}

ORCHARD_FUNCTION("sort", sort, SortBlock, 3)

} // namespace
