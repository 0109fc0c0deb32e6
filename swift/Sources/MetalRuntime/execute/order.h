// Seeded orders of threadgroups, SIMD-groups and lanes.
//
// Each is the sequence (start + i * step) mod count, which is a permutation if step and count have no common factor. It
// needs no storage and no shuffling. Seed 0 gives the ascending order.
#pragma once

#include <cstdint>
#include <numeric>

namespace mrt {

// Returns a well-mixed value for each input: the finalizer of splitmix64.
inline uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// Returns the seed of a part of a dispatch; seed 0 stays 0.
inline uint64_t derive_seed(uint64_t seed, uint64_t part) { return seed == 0 ? 0 : mix(seed ^ mix(part)) | 1; }

struct Order {
  uint64_t count = 0, start = 0, step = 1;

  Order() = default;
  Order(uint64_t count, uint64_t seed) : count(count) {
    if (seed == 0 || count < 2) return;
    start = mix(seed) % count;
    step = 1 + mix(seed + 1) % (count - 1);
    while (std::gcd(step, count) != 1) step = step % (count - 1) + 1;
  }

  uint64_t operator[](uint64_t index) const {
    return uint64_t((start + static_cast<unsigned __int128>(index) * step) % count);
  }
};

// The order of the 32 lanes of a SIMD-group: any odd step gives a permutation.
struct LaneOrder {
  uint32_t start = 0, step = 1;

  LaneOrder() = default;
  explicit LaneOrder(uint64_t seed) {
    if (seed == 0) return;
    uint64_t bits = mix(seed);
    start = bits & 31;
    step = ((bits >> 5) & 31) | 1;
  }

  uint32_t operator[](uint32_t index) const { return (start + index * step) & 31; }
};

} // namespace mrt
