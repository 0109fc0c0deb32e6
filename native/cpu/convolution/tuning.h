// Sizes at which convolutions change their method, and the blocks of each method. Those of parts of sums affect the
// order of additions, but never with the number of threads. The register tiles stand with the kernels.
//
// All were found on an EPYC with AVX-512 (family 25, model 17) and a Xeon with AVX-512 (family 6, model 207), by `bun
// run bench convolution`; they fit blocks into an L1 cache of 32 KB and an L2 cache of 1 MB, or bound a task's work
// from below (about 10 µs), and hold on any processor with such caches.
#pragma once

#include <cstdint>

namespace orchard::tuning::convolution {

// With fewer rows than this, a product would not fill a tile, so the depthwise kernel is used.
constexpr int64_t most_depthwise_rows = 4;
// Limit on the size of a box for all channels, zeros included.
constexpr int64_t most_box_numbers = 1 << 18;
// With fewer operations, the fork-join cost exceeds the gain.
constexpr double least_shared_operations = 1e6;

constexpr int64_t fold_elements = 1 << 14;   // of a task of `fold` and `unfold`
constexpr int64_t finish_elements = 1 << 14; // of a task that adds a bias or applies an activation

// ---------------------------------------------------------------- one tile of positions after the other (direct)

constexpr int64_t most_channels = 256;    // of a block of channels
constexpr int64_t task_positions = 512;   // largest number of positions of a task, unless one line has more
constexpr int64_t task_numbers = 1 << 17; // limit on a task's sums, and on its boxes
constexpr double most_padding = 1.1;      // limit on the sums computed in whole tiles, relative to those needed
// Costs relative to a multiply-add of a vector: to bring an element into a box, and to read it from there.
constexpr double direct_bring = 6, direct_read = 12;

// ---------------------------------------------------------------- windows as the columns of a product

constexpr int64_t most_depth = 384;  // steps in a block: a tile's weights then fill half of an L1 cache
constexpr int64_t most_panels = 8;   // panels of a task: 400 KB of floats
constexpr int64_t line_numbers = 64; // longer than a vector, and a whole number of cache lines
constexpr int64_t windows_bring = 14, windows_read = 6; // costs, as above

// The weight's gradient.
constexpr int64_t weigh_positions = 256, weigh_padding = 16; // the padding puts rows in different cache sets
constexpr int64_t weigh_tiles = 8;
constexpr int64_t least_weigh_positions = 384, most_weigh_parts = 16, most_weigh_sums = 1 << 20; // of parts

// ---------------------------------------------------------------- bands of a plane

constexpr int64_t unit_positions = 512;         // of a band, unless one line has more
constexpr int64_t most_box_steps = 1 << 20;     // limit on the numbers of a task's boxes
constexpr int64_t least_plane_positions = 1024; // of a part of the weight's gradient
// Costs are in units of one position times one row. Gathering a step's elements costs `plane_bring` rows for each
// position, and `plane_line` for each line, which was measured on lines of 8 to 28.
constexpr double plane_bring = 14, plane_line = 400;

// ---------------------------------------------------------------- depthwise

constexpr int most_lines = 8;                // lines of the result at once, enough to hide the latency of an addition
constexpr int most_taps = 9;                 // elements of the kernel whose sums are in registers at once
constexpr int64_t box_numbers = 1 << 14;     // for a band of one channel, if its lines permit
constexpr int64_t all_box_numbers = 1 << 16; // for a band of all channels
constexpr double depthwise_operations = 1 << 16; // of a task
constexpr int64_t least_weigh_tasks = 32;

} // namespace orchard::tuning::convolution
