// Sizes of sorting, selection, searches and histograms. No result depends on them.
//
// A task takes about 10 µs on an EPYC with AVX-512 (family 25, model 17), where its work was measured; that is enough
// to outweigh waking a thread (runtime/parallel.cpp) on any processor. Tiles fit into an L1 cache of 32 KB.
#pragma once

#include <cstdint>

namespace orchard::tuning::sorting {

constexpr int64_t most_histogram_parts = 32, least_histogram_part = 1 << 15; // elements
constexpr int64_t histogram_block = 256;                                     // elements whose bins are found together
constexpr int64_t median_elements = 1 << 13;
constexpr int64_t run_elements = 1 << 14;
constexpr int64_t search_steps = 1 << 14; // comparisons, about 10 µs

constexpr int64_t radix_from = 128;   // fewer records are sorted by comparison
constexpr int64_t select_block = 128; // elements that are compared at once

// Short slices, sorted many at a time (network.h): the longest, and the fewest of them for which it is faster. A block
// of elements with their keys and indices stays in the L1 cache.
constexpr int64_t longest_network = 256, least_slices = 4, network_block = 2048, network_elements = 4096;
constexpr int64_t network_task = 1 << 12; // elements of a task

// The first elements of long slices.
constexpr int64_t least_length = 1 << 9, least_part = 1 << 15, task_elements = 1 << 14;

constexpr int64_t order_elements = 1 << 12; // of a task that selects elements of slices by their order

// `isin`. Up to `few_others`, comparing a block of elements with each is faster than a search.
constexpr int64_t member_elements = 1 << 14;
constexpr int64_t few_others = 12, block_of_members = 512;
// The largest range of integers, as a multiple of their number, for which a table is used.
constexpr uint64_t most_per_other = 64;

} // namespace orchard::tuning::sorting
