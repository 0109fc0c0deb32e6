// Sizes at which reductions change their method, and their tasks and tiles. They affect the order of additions, but
// never with the number of threads.
//
// A task takes about 10 µs on an EPYC with AVX-512 (family 25, model 17), where its work was measured (`bun run bench
// reductions`); that is enough to outweigh waking a thread (runtime/parallel.cpp) on any processor. Tiles fit into an
// L1 cache of 32 KB.
#pragma once

#include <cstdint>

namespace orchard::tuning::reduction {

constexpr int64_t row_chunk = 1 << 16; // elements of one result that a task reduces
constexpr int64_t column_rows = 512;   // rows that a task reduces, for a block of columns
constexpr int64_t task_elements = 1 << 16;
constexpr int64_t short_task_elements = 1 << 14; // of short rows, which take several times as long per element
constexpr int64_t gradient_grain = 1 << 14;      // elements of a task of a derivative

// Rows of at most `short_row` elements are reduced many at a time. 4096 elements fit in the L1 cache.
constexpr int64_t short_row = 64, short_rows = 64, short_row_elements = short_row * short_rows;
constexpr int64_t least_short_rows = 8; // fewer results are computed one at a time
// Rows of adjacent elements that one call of a kernel reduces: finding each row alone takes a fifth of the time.
constexpr int64_t lines_of_call = 64;
// Rows of adjacent elements from this length on are reduced by kernels with `lines`, without a copy, unless an element
// has one byte: then a row fills few lanes.
constexpr int64_t shortest_line = 48;
// Rows longer than `short_row`, up to this length, are also reduced as columns, in smaller blocks, by kernels without
// `lines` for many rows. A column's sum has as many roundings as the row has elements. Only float64 would show this,
// since other floats are summed in float64.
constexpr int64_t longest_row = 96, long_rows = 32;
static_assert(longest_row * long_rows <= short_row_elements && longest_row * long_rows <= short_rows * short_row);

// The largest number of columns that are reduced at once, so that their states fit in the L1 cache.
constexpr int64_t reduction_columns = 1024;

constexpr int64_t tile = 4096;        // elements that are processed together, which fit in the L1 cache
constexpr int64_t direct_length = 64; // shorter runs are gathered first
constexpr int64_t power_piece = 512;  // elements whose powers are computed together
// Larger exponents are not computed by multiplication: the errors of squares double with each multiplication.
constexpr int largest_whole_power = 16;
constexpr int64_t two_pass_piece = 1024; // elements of a piece that stays in the L1 cache for its second pass
// The bandwidth of a thread depends on its memory requests in flight. The hardware prefetcher stays within a page, so
// cache lines one page ahead are prefetched.
constexpr int64_t bytes_ahead = 4096;

} // namespace orchard::tuning::reduction
