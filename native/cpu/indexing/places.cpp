// The function "indexPlaces".
#include "../functions.h"
#include "../parallel.h"
#include "indexing.h"
#include "tuning.h"

#include <atomic>
#include <cstring>

using namespace orchard;

namespace {

using tuning::indexing::list_elements;
using tuning::indexing::list_piece;

template <class Index> struct List {
  const Index *first;
  int64_t size;
};

// The number of the first element with an index out of range, no matter which thread finds it.
class FirstBad {
public:
  void set(int64_t element) {
    int64_t seen = least_.load(std::memory_order_relaxed);
    while (element < seen && !least_.compare_exchange_weak(seen, element, std::memory_order_relaxed)) {
    }
  }
  double number() const { return least_ == INT64_MAX ? -1 : static_cast<double>(least_.load()); }

private:
  std::atomic<int64_t> least_{INT64_MAX};
};

// places[i] = places[i] · size + index i, where a negative index counts from the end. Returns the number of the first
// index out of range, or -1. Each index is read once.
template <class Index>
int64_t add_list(const Index *index, int64_t stride, int64_t size, int64_t count, uint64_t *places) {
  bool is_bad = false;
  const uint64_t range = static_cast<uint64_t>(size);
  for (int64_t i = 0; i < count; i++) {
    const int64_t given = static_cast<int64_t>(index[i * stride]);
    const uint64_t place = static_cast<uint64_t>(given) + (given < 0 ? range : 0);
    is_bad |= place >= range;
    places[i] = places[i] * range + place;
  }
  if (!is_bad) return -1;
  for (int64_t i = 0; i < count; i++) {
    const int64_t given = static_cast<int64_t>(index[i * stride]);
    if (static_cast<uint64_t>(given) + (given < 0 ? range : 0) >= range) return i;
  }
  return 0; // another thread has changed the index since
}

template <class Index>
void find_places(const IndexPlacesBlock &block, const Operands &operands, const Nest<most_lists + 1> &nest) {
  const int64_t count = block.lists;
  if (count < 1 || count > most_lists) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected 1 to 8 lists of indices");
  List<Index> lists[most_lists];
  for (int list = 0; list < count; list++) {
    lists[list] = {operands.inputs<Index>(list, block.offsets[list], nest.extent(list)), block.sizes[list]};
    if (lists[list].size < 0) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected an axis of at least 0 elements");
  }
  int64_t *places = operands.results<int64_t>(most_lists, block.offset, Extent(nest.count()));
  double *found = operands.results<double>(most_lists + 1, 0, Extent());
  FirstBad bad;
  parallel_for(nest.count(), list_elements, [&](int64_t begin, int64_t end) {
    for_each_run(nest, begin, end, [&](const int64_t (&offsets)[most_lists + 1], int64_t first, int64_t length) {
      for (int64_t done = 0; done < length; done += list_piece) {
        uint64_t sums[list_piece] = {};
        const int64_t part = std::min(list_piece, length - done);
        for (int list = 0; list < count; list++) {
          const int64_t stride = nest.run_stride(list);
          const Index *index = lists[list].first + offsets[list] + done * stride;
          const int64_t at = add_list(index, stride, lists[list].size, part, sums);
          if (at >= 0) bad.set(first + done + at);
        }
        std::memcpy(places + first + done, sums, static_cast<size_t>(part) * sizeof *sums);
      }
    });
  });
  *found = bad.number();
}

// places = flat (row-major) indices into axes of the given sizes, from one list of indices per axis. found[0] = the
// number of the first element with an index out of range, or -1; places are undefined unless it is -1.
void index_places(const IndexPlacesBlock &block, Operands operands) {
  const Nest<most_lists + 1> nest = block.nest;
  if (block.dtype == DType::int64) find_places<int64_t>(block, operands, nest);
  else if (block.dtype == DType::int32) find_places<int32_t>(block, operands, nest);
  else fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected indices of int64 or int32");
}

ORCHARD_FUNCTION("indexPlaces", index_places, IndexPlacesBlock, 10)

} // namespace
