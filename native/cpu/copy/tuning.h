// Sizes of copies and padding. No result depends on them.
//
// A task takes about 10 µs on an EPYC with AVX-512 (family 25, model 17), where its work was measured; that is enough
// to outweigh waking a thread (runtime/parallel.cpp) on any processor. Tiles fit into an L1 cache of 32 KB.
#pragma once

#include <cstdint>

namespace orchard::tuning::copy {

constexpr int64_t task_bytes = 1 << 17;
constexpr int64_t padded_elements = 1 << 14; // of a task

constexpr int64_t cached_bytes = 1 << 21, page = 1 << 12;
constexpr int64_t shortest_streamed_row = 1 << 10;
constexpr int64_t longest_filled = 1 << 15; // bytes of rows of one element, each of which one thread writes
constexpr int64_t shortest_reversed = 8;    // elements of a row that is copied backwards by a loop over vectors
// glibc copies rows from this length on with `rep movsb`, which takes several times as long if the addresses are not
// aligned (EPYC).
constexpr int64_t long_row = 1 << 11;
constexpr int64_t short_part_bytes = 128; // of a padded row, up to which a loop is faster than memcpy
constexpr int64_t listed_places = 16;     // of a border, up to which a list of offsets is used

} // namespace orchard::tuning::copy
