// output[i] = the number to which a permutation of 0 … count − 1 maps i: a Feistel network over the next larger power
// of two, repeated until the result is less than count. src/random/permutation.ts explains it.
//
// Tiling: one thread per element. The grid is two-dimensional, because a coordinate has only 32 bits.

#include <metal_stdlib>
using namespace metal;

#include "common/loop.h"

// - swaps: 1 if elements 0 and 1 are swapped first
#include "generated/permutation.h"

constant uint FEISTEL_ROUNDS = 24;

// The finalizer of MurmurHash3 (Appleby).
inline uint mixed(uint x) {
    x = (x ^ x >> 16) * 0x85ebca6b;
    x = (x ^ x >> 13) * 0xc2b2ae35;
    return x ^ x >> 16;
}

inline ulong feistel(constant Permutation &given, ulong index) {
    uint left_mask = uint((1ul << given.left_bits) - 1);
    uint right_mask = uint((1ul << given.right_bits) - 1);
    uint left = uint(index >> given.right_bits);
    uint right = uint(index) & right_mask;
    for (uint round = 0; round < FEISTEL_ROUNDS; round += 2) {
        left = (left ^ mixed(right + given.keys[round])) & left_mask;
        right = (right ^ mixed(left + given.keys[round + 1])) & right_mask;
    }
    return ulong(left) << given.right_bits | right;
}

// output  [[buffer(0)]]  count elements, dense
// given   [[buffer(1)]]
template <typename Out>
kernel void permutation(
    device Out *output [[buffer(0)]],
    constant Permutation &given [[buffer(1)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    ulong element = loop_element(position, grid);
    ulong count = ulong(given.count);
    if (element < count) {
        ulong index = feistel(given, element < 2 ? element ^ given.swaps : element);
        while (index >= count) {
            index = feistel(given, index);
        }
        output[element] = Out(index);
    }
}

#define PERMUTATION(Out)                                                      \
    template [[host_name("permutation_" #Out)]] kernel void permutation<Out>( \
        device Out *, constant Permutation &, uint2, uint2);

PERMUTATION(float)
PERMUTATION(half)
PERMUTATION(bfloat)
PERMUTATION(long)
PERMUTATION(int)
PERMUTATION(uint)
PERMUTATION(char)
PERMUTATION(uchar)
