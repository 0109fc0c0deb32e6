// Sizes of scans. Those of parts affect the order of additions, but never with the number of threads.
//
// A task takes about 10 µs on an EPYC with AVX-512 (family 25, model 17), where its work was measured; that is enough
// to outweigh waking a thread (runtime/parallel.cpp) on any processor. Tiles fit into an L1 cache of 32 KB.
#pragma once

#include <cstdint>

namespace orchard::tuning::scan {

constexpr int64_t task_elements = 1 << 14;
constexpr int64_t long_slice = 1 << 16; // a few slices of at least this length are divided among threads
constexpr int64_t few_slices = 4;
constexpr int64_t part_elements = 1 << 14; // stays in the L2 cache for its second pass
constexpr int64_t part_tile = 1024;

// The largest number of adjacent slices that are scanned together.
constexpr int64_t max_adjacent_slices = 256, max_extremum_slices = 256;
// The number of slices that are scanned together if they are not adjacent, so that their dependency chains overlap;
// more would evict each other from the cache.
constexpr int64_t slices_together = 4;

constexpr int64_t logarithm_elements = 1 << 11;                         // of a task of logcumsumexp
constexpr int64_t trapezoid_elements = 1 << 15, trapezoid_slices = 256; // of a task; adjacent slices at a time

} // namespace orchard::tuning::scan
