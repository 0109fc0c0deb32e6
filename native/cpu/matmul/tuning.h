// Sizes at which matrix products change their method, and the blocks of each method. They affect the speed, and those
// of `split` the order of a sum's parts, but never with the number of threads. The register tiles stand with the
// kernels (tile.h, small.h, few_rows.h), which are written for them.
//
// "EPYC" is a processor with AVX-512 (family 25, model 17) of which one or two threads were used, "Xeon" one with
// AVX-512 and AMX (family 6, model 207) with up to 16 threads; `bun run bench products` repeats such times. Sizes with
// times next to them were chosen by these times. The others hold on any machine: they bound a task's work from below,
// or fit a block into a cache.
#pragma once

#include <cstdint>

namespace orchard::tuning::matmul {

// ---------------------------------------------------------------- threads

// The number of threads with which a product takes the least time: with w µs of work on one thread and 0.15 µs of
// fork-join cost per thread (2.5 µs for 16 threads of the Xeon), w / n + 0.15 n is least at n = √(w / 0.15); at 100
// GFLOP/s that is √(operations / operations_of_threads). Products with fewer than `least_operations` stay on one.
constexpr double least_operations = 1e6, operations_of_threads = 15000;

// The overhead of a task in units of the time for one tile: to claim the task; for each tile height, whose rows are
// packed; and for each panel of columns, which is read from another core's cache.
constexpr double task_cost = 0.2, row_cost = 2, panel_cost = 2;
constexpr int64_t most_rounds = 4, most_task_rows = 32; // limits of the search for the task size

// A small product is computed by one thread, so the threads share the products of a batch. They also share medium
// products, if that takes less time by the formula above: computing them one by one costs a fork-join each, and a
// result of few tiles leaves threads idle. 16 threads of the Xeon: 19 products 55 x 1531 x 48 of bfloat16 took 1.0 ms
// one by one, and 0.8 ms on two threads. Larger products use all threads together, since otherwise every thread would
// pack its operands separately.
constexpr double small_operations = 2.0 * 96 * 96 * 96;
constexpr double medium_operations = 2.0 * 768 * 768 * 768;
constexpr double operations_of_fork_join = 2e5;               // 2 µs at 100 GFLOP/s, besides those of each thread
constexpr int64_t rows_of_task = 16, rows_of_tiled_task = 32; // and columns: the least that a thread computes
constexpr double operations_of_task = 1e6;
constexpr double operations_of_call = 2000; // the time of a call for a tiny product: about 20 ns

constexpr int64_t elements_of_copy = 1 << 15; // of a task that copies an operand for a BLAS

// ---------------------------------------------------------------- products by packed panels

constexpr int64_t most_depth = 384;                 // depth of a block of k
constexpr int64_t most_block_rows = 120;            // half as many if rows are not packed
constexpr int64_t column_bytes = 4096;              // in a row of a block of the result
constexpr int64_t packed_bytes = int64_t(64) << 20; // limit on b's packed panels, if k allows

// When operands are packed. a is packed if its numbers are read often (once for each panel of columns). b is packed if
// its steps are far apart, so that each is on a different page, and many tiles read them. Two threads of the Xeon: 512
// x 128 x 768 with a transposed takes 485 µs with packing and 315 µs without.
constexpr int64_t most_panels_in_place = 16;
constexpr int64_t most_bytes_between_steps = 2048;

// Rows at a multiple of 4 KB from each other share a set of the L1 cache, which has 8 ways or more on common
// processors. They are packed too if two panels read them. One thread of the EPYC: 300 x 2048 x 256 takes 2.9 ms
// instead of 4.1 ms.
constexpr int64_t ways_of_cache = 8, way_bytes = 4096;

// Panels that another thread packed are fetched from its cache line by line, which takes longer than packing them
// again. Two threads of the Xeon: 768 x 128 x 128 takes 101 µs with shared panels and 81 µs with per-thread panels.
constexpr int64_t most_own_panels = 1 << 18;   // numbers in all panels
constexpr int64_t rows_worth_own_panels = 256; // rows per thread

// ---------------------------------------------------------------- other forms

// A product with one tile of rows reads each number of b once. If b's rows have adjacent elements and are far apart, b
// is read in place, a few steps of all columns at a time, which causes few TLB misses.
constexpr int64_t least_numbers_of_few_rows = 1 << 15; // numbers of b
constexpr int64_t depth_of_few_rows = 32;
constexpr int64_t tasks_of_thread = 2, least_panels = 2;                      // fewest panels of a task
constexpr int64_t least_panels_of_few_rows = 4, most_panels_of_few_rows = 16; // panels of a task

// Few rows times columns with adjacent elements, as dot products: the fewest numbers of a sum, and of b. One thread of
// the EPYC: 8 x 784 x 30 takes 5.8 µs instead of 7.8 µs, but 14 x 100 x 300 would take 18 µs instead of 14 µs.
constexpr int64_t least_depth_of_dots = 128, least_numbers_of_dots = 1 << 13;
constexpr int64_t dot_depth = 512;             // numbers of a row or column in a block, in the L1 cache
constexpr double dot_operations_of_task = 2e5; // 10 µs if b is read from memory
constexpr double operations_of_short_dot = 32; // that the sum over the lanes of a dot product takes

// Long sums of a small result, whose k is divided into parts.
constexpr double least_operations_of_split = 4e6, operations_of_part = 1e6;
constexpr int64_t most_numbers_of_split = 4096; // of the result: a larger one has tiles for all threads
constexpr int64_t least_depth_of_part = 384, most_parts = 32;

constexpr int64_t numbers_of_outer = 1 << 15; // of a task that computes rows of a column times a row

// Small products, whose rows are not packed.
constexpr int64_t small_panel_bytes = int64_t(32) << 10;     // limit on a panel that several tiles read: the L1 cache
constexpr int64_t packed_vectors = 2;                        // at most, of a packed panel
constexpr double most_small_operations = 2.0 * 96 * 96 * 96; // more are faster with packed rows
constexpr int64_t most_tiles_of_far_steps = 2;

// Matrices times vectors.
constexpr int64_t vector_chunk = 512;           // numbers that are converted to the accumulator's type at a time
constexpr int64_t short_row = 4;                // numbers of a row that are summed one by one
constexpr int64_t numbers_of_columns = 1 << 15; // of a task that adds columns
constexpr int64_t long_row = 1024;              // numbers of a row from which it is summed alone, as memory is read
constexpr int64_t whole_chunk = 2048;           // numbers of a row that are summed at a time, without conversion
constexpr int64_t stack_numbers = 512;          // of scratch memory: an allocation takes as long as a small product

// float16 and bfloat16 by instructions for pairs of numbers. Up to this many rows of float32, multiplying in place
// takes no longer than packing b. For smaller products, packing the operands would take longer than computing the
// product in float32.
constexpr int64_t most_rows_of_dots = 8;
constexpr double least_pair_operations = 2.0 * 32 * 32 * 32;

// Tiles of 32 x 32.
constexpr int64_t tiled_panel_bytes = int64_t(64) << 20; // limit on b's panels, unless one panel is larger
constexpr int64_t row_block_bytes = int64_t(512) << 10;  // limit on a's packed rows, which stay in the L2 cache
constexpr double tiled_speed = 4;                        // relative to float32 multiply-adds
// Packing a's rows pays off if many panels read them, or if they are so far apart that few of them fit in the L1 cache.
// Xeon: with AMX, 512 x 2048 x 512 takes 1.2 ms with packing and 1.6 ms without.
constexpr int64_t most_tiled_panels_in_place = 16, most_row_in_place = 768;

constexpr int polls_between_yields = 1000; // of a thread that waits for parts of other threads

} // namespace orchard::tuning::matmul
