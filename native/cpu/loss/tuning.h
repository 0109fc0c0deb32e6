// Sizes of losses. Those of chunks affect the order of additions, but never with the number of threads.
//
// A task takes about 10 µs on an EPYC with AVX-512 (family 25, model 17), where its work was measured; that is enough
// to outweigh waking a thread (runtime/parallel.cpp) on any processor. Tiles fit into an L1 cache of 32 KB.
#pragma once

#include <cstdint>

namespace orchard::tuning::loss {

constexpr int64_t chunk_elements = 1 << 15; // of a mean or a sum: chunks depend on sizes only, so the sums do too
constexpr int64_t class_elements = 1 << 14; // of a task of cross entropy or a margin loss
constexpr int64_t nll_slices = 4096;

constexpr int64_t tile = 1024;
constexpr int64_t batch_slices = 16; // the largest number of adjacent slices that are computed together
constexpr int64_t class_tile = 512;  // classes in a tile of several slices; a tile of one slice has four times as many

} // namespace orchard::tuning::loss
