// Tasks and tiles of attention. Those of keys affect the order of additions, but never with the number of threads.
//
// They were found on an EPYC with AVX-512 (family 25, model 17), by `bun run bench attention`, and fit an L1 cache of
// 32 KB and an L2 cache of 1 MB.
#pragma once

#include <cstdint>

namespace orchard::tuning::attention {

// For up to this many queries of a sequence, keys are not packed.
constexpr int64_t few_queries = 4;
// Keys per tile of scores.
constexpr int64_t tile_keys = 128;
// Products of a task that outweigh the fork-join cost: about 10 µs.
constexpr int64_t task_products = 1 << 20;
constexpr int64_t row_products = 16;      // products that take as long as packing and writing a number of a row
constexpr int64_t row_elements = 1 << 14; // of a task that writes rows of keys and values into a cache

// Forward pass: queries per chunk. Each chunk packs all keys that it attends to, so small chunks repeat that work. On
// one thread, chunks of 128 queries took longer than whole heads: 5 % for 1024 queries, and 25 % for 256.
constexpr int64_t forward_tasks = 64, least_queries = 256, most_queries = 4096;
constexpr int64_t most_rows_ahead = 512; // of the next task, to prefetch into the L2 cache

// Few queries: keys per chunk, and products of a task. Reading the keys and values takes longer than multiplying them.
constexpr int64_t few_queries_tasks = 16, least_keys = 8 * tile_keys, few_queries_products = 1 << 17;

// Backward pass: keys per chunk, and per block that stays in the L2 cache.
constexpr int64_t backward_tasks = 16, most_partial_heads = 128, least_backward_keys = 2 * tile_keys;
constexpr int64_t most_block = 2 * tile_keys, cached_bytes = 640 << 10;

} // namespace orchard::tuning::attention
