// Stores that go past the caches, for results that no cache would keep. An ordinary store reads its line first, so that
// a result costs its bytes twice.
#pragma once

#include "../isa.h"

#include <cstdint>

namespace orchard {

// Null where the instruction set has none.
struct Streams {
  void (*copy)(const void *source, void *target, int64_t bytes); // to an address that is a multiple of `stream_line`
  void (*finish)(); // orders what was copied before what this thread does next
};

constexpr int64_t stream_line = 64;

} // namespace orchard

ORCHARD_ISA_TABLE(Streams, streams)
