// Sorts many short slices at once by a sorting network: a vector has elements of several slices.
#pragma once

#include "../parallel.h"
#include "../short_slices.h"
#include "tuning.h"

namespace orchard {

using tuning::sorting::longest_network, tuning::sorting::network_elements;
static_assert(longest_network * short_unit <= network_elements, "a unit of the longest slices fits in a block");

// A network has n log²(n) / 4 comparisons, so sorting one slice after the other is faster for long slices.
inline bool are_for_network(int64_t length, int64_t count) {
  return length > 0 && length <= longest_network && count >= tuning::sorting::least_slices;
}

// The number of slices of a block; depends on their length only.
inline int64_t network_slices(int64_t length) {
  return std::clamp(tuning::sorting::network_block / length / short_unit * short_unit, short_unit, most_short_slices);
}

// Calls use(first, count) for all blocks of `count` slices, on several threads.
template <class Use> void for_network_blocks(int64_t length, int64_t count, Use &&use) {
  const int64_t together = network_slices(length), task = std::max<int64_t>(1, tuning::sorting::network_task / length);
  parallel_for(count, (task + together - 1) / together * together, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += together) use(at, std::min(together, end - at));
  });
}

// A block of slices, in ascending order of the keys in keys.h, or in descending order. Equal elements keep their order.
struct NetworkBlock {
  const char *x; // with the offsets of `slices`
  ShortSlices slices;
  bool descending;
};

// The slices' orders. NaN has the largest key.
struct NetworkOrders {
  int64_t pitch;
  alignas(64) int32_t index[network_elements];    // [i * pitch + j]: the index of element i of slice j in order
  alignas(64) int32_t numbers[most_short_slices]; // elements of a slice that are not NaN
};

struct Networks {
  // Indexed by dtype.
  void (*order[dtype_count])(const NetworkBlock &block, NetworkOrders &orders);
  // The last index of the most frequent element of each slice; the smallest of several. NaN equals nothing.
  void (*mode[dtype_count])(const NetworkBlock &block, int32_t *indices);
};

} // namespace orchard

ORCHARD_ISA_TABLE(Networks, networks)
