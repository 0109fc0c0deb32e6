// Sizes of softmax and its relatives. Those of parts affect the order of additions, but never with the number of
// threads.
//
// A task takes about 10 µs on an EPYC with AVX-512 (family 25, model 17), where its work was measured; that is enough
// to outweigh waking a thread (runtime/parallel.cpp) on any processor. Tiles fit into an L1 cache of 32 KB.
#pragma once

#include <cstdint>

namespace orchard::tuning::softmax {

constexpr int64_t task_elements = 1 << 14;
// Limits for batches of adjacent slices: a batch must stay in a cache, but its rows should be long enough for efficient
// memory access.
constexpr int64_t batch_elements = 1 << 20;
constexpr int64_t fewest_slices = 64;
constexpr int64_t long_slice = 1 << 17; // slices of at least this length are divided among threads
constexpr int64_t part_elements = 1 << 15;

// The largest number of slices that are computed together if they are adjacent in memory.
constexpr int64_t max_softmax_slices = 256;
constexpr int64_t tile = 2048; // adjacent elements that are processed together, which fit in the L1 cache

} // namespace orchard::tuning::softmax
