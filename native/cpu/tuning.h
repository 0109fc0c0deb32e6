// Sizes of the families that have only a few; the other families have a table in their folders. No result depends on
// them.
//
// A task takes about 10 µs on an EPYC with AVX-512 (family 25, model 17), where its work was measured; that is enough
// to outweigh waking a thread (runtime/parallel.cpp) on any processor. Tiles fit into an L1 cache of 32 KB.
#pragma once

#include <cstdint>

namespace orchard::tuning {

namespace conversion {
constexpr int64_t task_elements = 1 << 15, task_unit = 1 << 10;
constexpr int64_t tile = 1024; // widened elements, which are narrowed again
} // namespace conversion

namespace creation {
constexpr int64_t task_elements = 1 << 16; // about 20 µs
} // namespace creation

namespace embedding {
constexpr int64_t task_elements = 1 << 14;
constexpr int64_t bag_columns = 1024, bag_rows = 64; // of a bag that are summed at a time
} // namespace embedding

namespace optim {
// The number of elements of a task, which may belong to several parameters. Each parameter starts at a multiple of
// `alignment` among all elements.
constexpr int64_t task_elements = 1 << 14, alignment = 64;
constexpr int64_t tile = 512;
} // namespace optim

// Programs of `compile`.
namespace program {
constexpr int64_t parallel_elements = 1 << 14; // of a group of pieces
} // namespace program

namespace position {
constexpr int64_t task_elements = 1 << 14;
// The number of positions whose table of cosines and sines is computed at once; with the rows of one head it fits in
// the L1 cache.
constexpr int64_t rope_positions = 16;
} // namespace position

namespace random {
constexpr int64_t tile_elements = 1024, task_tiles = 16; // about 30 µs
} // namespace random

namespace recurrent {
constexpr int64_t task_numbers = 4096; // of the next states
constexpr int64_t chunk = 256;         // numbers of a row that are computed at a time
// With at most this many rows, and fewer than this many steps, weights are read in place instead of being transposed.
constexpr int64_t most_rows_in_place = 28, least_steps_turned = 3;
} // namespace recurrent

// Slices of at most `longest_short` elements are computed in blocks of about `short_elements` elements, which stay in
// the L1 cache. A block is a multiple of `short_unit` slices, which is a multiple of a vector's lanes. If the length is
// a whole number of `whole_unit`, loops have no remainder: from `fast_from` on, such slices are as fast one by one.
namespace slices {
constexpr int64_t longest_short = 256, short_unit = 16, short_elements = 4096, most_short_slices = 256;
constexpr int64_t whole_unit = 32, fast_from = 128;
static_assert(longest_short * short_unit <= short_elements, "a unit of the longest slices fits in a block");
} // namespace slices

namespace streams {
constexpr int64_t streamed_bytes = 16 << 20; // at least this many bytes are written with nontemporal stores
} // namespace streams

} // namespace orchard::tuning
