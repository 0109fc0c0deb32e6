// output[i] = x[i] scale, or 0 where the random word of element i is at most `last_dropped` (src/random/philox.ts says
// which word that is).
//
// Tiling: one thread for four elements, which share a block of Philox; x may have any strides.

#include <metal_stdlib>
using namespace metal;

#include "common/philox.h"
#include "common/loop.h"

struct Dropout {
    LoopNest loop;  // operands: x, output
    uint key[2];
    uint counter[4];
    uint last_dropped;
    float scale;
};

// x       [[buffer(0)]]  the elements that its strides reach
// output  [[buffer(1)]]  the elements that its strides reach
// given   [[buffer(2)]]
template <typename T>
kernel void dropout(
    device const T *x [[buffer(0)]],
    device T *output [[buffer(1)]],
    constant Dropout &given [[buffer(2)]],
    uint block [[thread_position_in_grid]]) {
    uint4 start = uint4(given.counter[0], given.counter[1], given.counter[2], given.counter[3]);
    uint4 words = philox(philox_block(start, block), uint2(given.key[0], given.key[1]));
    ulong first = ulong(block) * 4;
    uint count = uint(min(ulong(4), ulong(given.loop.count) - first));
    for (uint lane = 0; lane < count; lane += 1) {
        long places[2];
        loop_places(given.loop, first + lane, places);
        bool is_kept = words[lane] > given.last_dropped;
        output[places[1]] = is_kept ? T(float(x[places[0]]) * given.scale) : T(0.0f);
    }
}

#define DROPOUT(T)                                                \
    template [[host_name("dropout_" #T)]] kernel void dropout<T>( \
        device const T *, device T *, constant Dropout &, uint);

DROPOUT(float)
DROPOUT(half)
DROPOUT(bfloat)
