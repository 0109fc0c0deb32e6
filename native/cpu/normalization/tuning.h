// Sizes of normalizations. Those of chunks and pieces affect the order of additions, but never with the number of
// threads.
//
// A task takes about 10 µs on an EPYC with AVX-512 (family 25, model 17), where its work was measured; that is enough
// to outweigh waking a thread (runtime/parallel.cpp) on any processor. Tiles fit into an L1 cache of 32 KB.
#pragma once

#include <cstdint>

namespace orchard::tuning::normalization {

constexpr int64_t row_task_elements = 1 << 13; // about 5 µs, so that even a small batch of rows is divided evenly
constexpr int64_t batch_task_elements = 1 << 13;
constexpr int64_t group_task_elements = 1 << 14;

// The maximum number of chunks of rows, each with separate sums for weight and bias: more than a machine has threads.
constexpr int64_t most_chunks = 256;
constexpr int64_t most_short_row = 63; // longer rows are as fast one after the other
// The number of rows whose gradients are summed in float32 before they are added to the chunk's float64 sums.
constexpr int64_t float_rows = 64;
constexpr int64_t total_columns = 256; // columns of the sums that are added up together
// The number of rows that are gathered at once: if the elements of a row are not adjacent, those of adjacent rows often
// are.
constexpr int64_t rows_together = 16;

// If an axis inside the channels is shorter than least_inner, adjacent channels are computed together, up to this many
// columns.
constexpr int64_t least_inner = 32, slab_columns = 64;
constexpr int64_t piece = 1024; // elements that are processed together, which stay in the L1 cache

} // namespace orchard::tuning::normalization
