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
constexpr int64_t bag_columns = 1024; // of a bag that are summed at a time
} // namespace embedding

namespace optim {
// The number of elements of a task, which may belong to several parameters. Each parameter starts at a multiple of
// `alignment` among all elements.
constexpr int64_t task_elements = 1 << 14, alignment = 64;
constexpr int64_t tile = 512;
} // namespace optim

namespace position {
constexpr int64_t task_elements = 1 << 14;
} // namespace position

namespace random {
constexpr int64_t task_tiles = 16; // about 30 µs
} // namespace random

namespace recurrent {
constexpr int64_t task_numbers = 4096; // of the next states
constexpr int64_t chunk = 256;         // numbers of a row that are computed at a time
// With at most this many rows, and fewer than this many steps, weights are read in place instead of being transposed.
constexpr int64_t most_rows_in_place = 28, least_steps_turned = 3;
} // namespace recurrent

} // namespace orchard::tuning
