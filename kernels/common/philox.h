// Philox4x32-10: computes four 32-bit words from a 128-bit counter and a 64-bit key. src/random/philox.ts explains how
// the counter is used. native/cpu/random/philox.h has the same constants, and a test compares the three files.

#ifndef ORCHARD_COMMON_PHILOX_H
#define ORCHARD_COMMON_PHILOX_H

constant uint PHILOX_MULTIPLIERS[2] = {0xd2511f53, 0xcd9e8d57};
constant uint PHILOX_WEYL[2] = {0x9e3779b9, 0xbb67ae85};
constant uint PHILOX_ROUNDS = 10;

inline uint4 philox(uint4 counter, uint2 key) {
    for (uint round = 0; round < PHILOX_ROUNDS; round += 1) {
        ulong first = ulong(PHILOX_MULTIPLIERS[0]) * counter.x;
        ulong second = ulong(PHILOX_MULTIPLIERS[1]) * counter.z;
        counter = uint4(
            uint(second >> 32) ^ counter.y ^ key.x, uint(second), uint(first >> 32) ^ counter.w ^ key.y, uint(first));
        key += uint2(PHILOX_WEYL[0], PHILOX_WEYL[1]);
    }
    return counter;
}

// Returns the counter for a block of four elements of a tensor; `start` is the call's first counter.
inline uint4 philox_block(uint4 start, ulong block) {
    ulong number = (ulong(start.y) << 32 | start.x) + block;
    return uint4(uint(number), uint(number >> 32), start.z, start.w);
}

// 24 bits in [0, 1)
inline float uniform_number(uint word) { return float(word >> 8) * 5.96046448e-08f; }  // 2^-24

#endif
