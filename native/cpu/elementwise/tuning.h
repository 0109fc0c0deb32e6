// Sizes of elementwise operations. No result depends on them.
//
// The times of operations were measured on an EPYC with AVX-512 (family 25, model 17); tasks of about 10 µs there take
// 5 to 20 µs on other processors, which is enough to outweigh waking a thread (runtime/parallel.cpp). The sizes of
// tiles fit some operands into an L1 cache of 32 KB, and hold on any processor.
#pragma once

#include <cstdint>

namespace orchard::tuning::elementwise {

// Elements of a task. `slow_grain` and `very_slow_grain` are for functions that elementwise.cpp lists.
constexpr int64_t usual_grain = 1 << 15; // for operations limited by memory
constexpr int64_t slow_grain = 1 << 13, very_slow_grain = 1 << 11;
constexpr int64_t cross_grain = 1 << 13; // vectors of three elements
constexpr int64_t incomplete_gamma_grain = 64;

// Elements that are not dense are copied in pieces that fit in the L1 cache.
constexpr int64_t tile = 512;
constexpr int64_t shortest_run = 96;           // shorter ones are gathered to tiles
constexpr int64_t longest_gathered = 64;       // elements of a run that is gathered with others like it
constexpr int64_t longest_repeated = tile / 2; // the same, of a run that repeats one element
constexpr int64_t fewest_transposed = 1024;    // minimum elements for which blocks pay off
constexpr int64_t fewest_in_block = 64;        // minimum elements for which starting a kernel pays off
constexpr int64_t loop_block_bytes = 1 << 14;  // of an operand in a transposed block

// Elements of float16 and bfloat16 that are widened at a time.
constexpr int64_t widened_tile = 1024;
// If at most one in `rare` elements is not plain, the plain formula computes the row, and the others are recomputed one
// by one, in stretches of this many elements.
constexpr int64_t rare = 32, stretch = 64;
// Elements of a power's logarithms that are kept between its two loops.
constexpr int64_t power_tile = 512;

constexpr int64_t kron_elements = 1 << 15; // of a task

// Fused chains. A unit that is not a multiple of a tile needs at least this many tiles: its rest takes as long as
// several tiles.
constexpr int64_t fewest_tiles = 8;
constexpr int64_t shortest_row = 64; // for a call of a row function for each unit

} // namespace orchard::tuning::elementwise
