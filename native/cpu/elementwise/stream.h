// Stores that bypass the caches, for results that exceed any cache. A normal store first reads its line, which doubles
// the memory traffic of a result.
#pragma once

#include "../isa.h"

#include <cstdint>

namespace orchard {

// Null if the instruction set has none.
struct Streams {
  void (*copy)(const void *source, void *target, int64_t bytes); // to an address that is a multiple of `stream_line`
  void (*finish)(); // orders the copied data before this thread's later stores
};

constexpr int64_t stream_line = 64;

} // namespace orchard

ORCHARD_ISA_TABLE(Streams, streams)
