// Philox4x32-10 for runs of blocks. src/random/philox.ts explains the algorithm. kernels/common/philox.h has the same
// constants, and a test compares the three files.
#pragma once

#include "../isa.h"

#include <cstdint>

namespace orchard {

struct PhiloxStart {
  uint32_t key[2];
  uint32_t counter[4];
};

namespace ORCHARD_ISA {

constexpr uint32_t philox_multipliers[2] = {0xd2511f53, 0xcd9e8d57};
constexpr uint32_t philox_weyl[2] = {0x9e3779b9, 0xbb67ae85};
constexpr int philox_rounds = 10;

struct PhiloxBlock {
  uint32_t word[4];
};

inline PhiloxBlock philox(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t k0, uint32_t k1) {
#pragma GCC unroll 10
  for (int round = 0; round < philox_rounds; round++) {
    uint64_t first = uint64_t(philox_multipliers[0]) * c0;
    uint64_t second = uint64_t(philox_multipliers[1]) * c2;
    c0 = uint32_t(second >> 32) ^ c1 ^ k0;
    c1 = uint32_t(second);
    c2 = uint32_t(first >> 32) ^ c3 ^ k1;
    c3 = uint32_t(first);
    k0 += philox_weyl[0];
    k1 += philox_weyl[1];
  }
  return {{c0, c1, c2, c3}};
}

// The number of blocks that are computed together: their words fit in the L1 cache.
constexpr int64_t tile_blocks = 256;

// Indexed by the word within a block, then by block, so that loops over blocks are vectorized.
struct Words {
  uint32_t lane[4][tile_blocks];
};

// Computes `count` blocks from `first` on, at most tile_blocks. `stream` is added to the third word of the counter.
inline void philox_tile(const PhiloxStart &start, uint32_t stream, int64_t first, int64_t count, Words &words) {
  uint64_t base = (uint64_t(start.counter[1]) << 32 | start.counter[0]) + uint64_t(first);
  uint32_t c2 = start.counter[2] + stream, c3 = start.counter[3], k0 = start.key[0], k1 = start.key[1];
  for (int64_t j = 0; j < count; j++) {
    uint64_t block = base + uint64_t(j);
    PhiloxBlock drawn = philox(uint32_t(block), uint32_t(block >> 32), c2, c3, k0, k1);
    for (int lane = 0; lane < 4; lane++) words.lane[lane][j] = drawn.word[lane];
  }
}

} // namespace ORCHARD_ISA
} // namespace orchard
