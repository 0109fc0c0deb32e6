// Sizes at which transforms change their method, and their tasks. The method depends on the lengths alone.
//
// They were found on an EPYC with AVX-512 (family 25, model 17), by `bun run bench fft`. A task takes about 10 µs
// there, enough to outweigh waking a thread (runtime/parallel.cpp) on any processor.
#pragma once

#include <cstdint>

namespace orchard::tuning::fft {

constexpr double operations_of_task = 1 << 16;
constexpr int64_t numbers_of_task = 1 << 14;
constexpr int64_t numbers_of_chunk = 1 << 17;             // of rows that stay in a cache between two passes
constexpr int64_t most_cached_bytes = int64_t(128) << 20; // of plans that are kept for later calls
constexpr int64_t most_lane_numbers = 4096;               // of matrices that are computed one per vector lane

// The largest prime factor that is computed by its definition. Lengths with a larger one use Bluestein's algorithm.
constexpr int64_t largest_radix = 157;
// The longest transform whose elements are computed one lane each; longer ones are split into two factors.
constexpr int64_t longest_in_lanes = 512;
// The time of loads, stores and transpositions of an element, in units of a pass.
constexpr double moves = 2.5;

} // namespace orchard::tuning::fft
