// Nontemporal stores, which bypass the caches, for results larger than any cache. A normal store first reads the cache
// line, which doubles a result's memory traffic.
#pragma once

#include "../isa.h"

#include <cstdint>

namespace orchard {

// The functions are null if the instruction set has no such stores.
struct Streams {
  void (*copy)(const void *source, void *target, int64_t bytes); // `target` is a multiple of `stream_line`
  void (*finish)(); // orders the copied data before this thread's later stores
};

constexpr int64_t stream_line = 64;

} // namespace orchard

ORCHARD_ISA_TABLE(Streams, streams)
