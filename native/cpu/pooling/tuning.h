// Sizes of pooling, resampling and sampling. No result depends on them.
//
// A task takes about 10 µs on an EPYC with AVX-512 (family 25, model 17), where its work was measured; that is enough
// to outweigh waking a thread (runtime/parallel.cpp) on any processor. Tiles fit into an L1 cache of 32 KB.
#pragma once

#include <cstdint>

namespace orchard::tuning::pooling {

constexpr int64_t window_steps = 1 << 13;   // elements of windows: 8 µs if their lines are vectors, 30 µs otherwise
constexpr int64_t resample_steps = 1 << 15; // additions
constexpr int64_t sampled_steps = 1 << 14;
constexpr int64_t grid_steps = 1 << 15, affine_steps = 1 << 13;
constexpr int64_t unpool_steps = 1 << 15;

// Several planes are computed together, with a plane for each lane, if there are at least `least_planes`, lines of
// results are shorter than `long_line`, or the windows of a line differ or have weights and are shorter than
// `long_uneven_window`, and planes fit in the L2 cache. Lines that are not shorter than `medium_line` are computed this
// way only if there are as many planes as a block has. Planes of up to `medium_plane` elements fit too, but only
// `many_planes` of them are enough work for all threads.
constexpr int64_t least_planes = 6, long_line = 32, medium_line = 12, long_uneven_window = 24;
constexpr int64_t small_plane = 1 << 11, medium_plane = 1 << 13, many_planes = 128;
constexpr int64_t plane_steps = 1 << 15; // elements that are moved, and elements of windows: 8 µs

constexpr int64_t chunk = 256;       // results of a line that are computed together
constexpr int64_t some_windows = 64; // windows of a line of several planes that are found together
// With fewer windows than this in a line, and at least this many elements in each, lanes are elements of one window
// instead of one element of several windows.
constexpr int64_t few_windows = 16, long_window = 8;
constexpr int64_t short_window = 16; // longer ones are summed in parts

constexpr int64_t short_row = 8; // elements of a row of an adaptive window, below which lanes do not pay

} // namespace orchard::tuning::pooling
