// Sizes of gather, scatter, masks and index lists. No result depends on them.
//
// A task takes about 10 µs on an EPYC with AVX-512 (family 25, model 17), where its work was measured; that is enough
// to outweigh waking a thread (runtime/parallel.cpp) on any processor. Tiles fit into an L1 cache of 32 KB.
#pragma once

#include <cstdint>

namespace orchard::tuning::indexing {

// A task of `gather` copies this many bytes of rows, or this many single elements.
constexpr int64_t gather_bytes = 1 << 18, gathered_elements = 1 << 13;
constexpr int64_t most_shared = 1 << 12; // indices
// Rows of at least this many bytes are written with nontemporal stores. While a row is copied, this many bytes of the
// next row are prefetched: the hardware prefetcher can't predict the next row of a table, only the following cache
// lines of a row that is being read.
constexpr int64_t least_streamed_row = 512, fetched_bytes = 1024, least_fetched = 64; // least_fetched: in elements

constexpr int64_t check_elements = 1 << 15; // indices of a task that checks them
constexpr int64_t list_elements = 1 << 14;  // indices of a task that adds several lists
constexpr int64_t list_piece = 512;         // flat indices that stay in the L1 cache while all lists are added
constexpr int64_t mask_piece = 512;         // elements whose flags and values stay in the L1 cache

// With fewer indices than this fraction of a slice's elements, summing only the selected elements is faster than
// summing all.
constexpr int64_t few_indices = 4;
// Slices that are processed together: at least `scatter_tile` where there are so many, and more while their elements,
// or the sums of their elements, stay below `scatter_tile_elements`.
constexpr int64_t scatter_tile = 16, scatter_tile_elements = 1 << 15;

// Slices with one list of indices are computed by rows of at least `least_columns` elements. Where few places are
// selected, copying x at once is faster than copying rows of fewer than `least_row_bytes`.
constexpr int64_t least_columns = 4, least_row_bytes = 128;
constexpr int64_t combined_columns = 1 << 9;            // sums of a part of a row, which stay in the L1 cache
constexpr int64_t group_rows = 8;                       // that are combined at a time
constexpr int64_t row_elements = 1 << 15;               // that a task reads and writes
constexpr int64_t least_row_tasks = 4, least_tile = 64; // tasks per thread; columns of a task

// Slices that are not adjacent are computed together if they have few elements and indices, so that the call of a
// kernel does not take longer than its loop.
constexpr int64_t most_together = 32, slices_together = 64;

} // namespace orchard::tuning::indexing
