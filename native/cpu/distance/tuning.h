// Sizes of distances. Those of blocks and points affect the order of additions, but never with the number of threads.
//
// A task takes about 10 µs on an EPYC with AVX-512 (family 25, model 17), where its work was measured; that is enough
// to outweigh waking a thread (runtime/parallel.cpp) on any processor. Tiles fit into an L1 cache of 32 KB.
#pragma once

#include <cstdint>

namespace orchard::tuning::distance {

constexpr int64_t block_depth = 128; // coordinates of a block
constexpr int64_t rows_of_task = 64; // of x
constexpr double terms_of_task = 1e5;
constexpr int64_t points_of_sum = 256; // summed in registers before they are added to the result
constexpr int64_t pair_task_elements = 1 << 15;
// Shorter vectors are summed by few lanes (few_lanes.h), since clearing and adding more of them would take longer.
constexpr int64_t shortest_with_lanes = 128;
// Vectors of at most this many elements are copied to columns, and columns of this many pairs are summed together:
// at most `pairs_elements` elements.
constexpr int64_t longest_pair = 16, pairs_together = 64, pairs_elements = 2048;
constexpr int64_t fewest_pairs = 8; // side by side
constexpr int64_t pair_part = 1024; // elements of a pair that are widened at a time

constexpr int64_t renorm_task_elements = 1 << 15;
// Slices with shorter runs of adjacent elements are summed row by row, all slices together.
constexpr int64_t shortest_renorm_run = 64;

} // namespace orchard::tuning::distance
