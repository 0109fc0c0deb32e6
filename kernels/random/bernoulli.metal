// output[i] = 1 with probability p[i], else 0: whether the uniform number of element i is less than p[i].
//
// Tiling: one thread per element, which computes the element's block of Philox; p may have any strides.

#include <metal_stdlib>
using namespace metal;

#include "common/philox.h"
#include "common/loop.h"

// - loop: operands: p, output
#include "generated/bernoulli.h"

// p       [[buffer(0)]]  the elements that its strides reach
// output  [[buffer(1)]]  the elements that its strides reach
// given   [[buffer(2)]]
template <typename P, typename Out>
kernel void bernoulli(
    device const P *p [[buffer(0)]],
    device Out *output [[buffer(1)]],
    constant Bernoulli &given [[buffer(2)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    ulong element = loop_element(position, grid);
    if (element >= ulong(given.loop.count)) {
        return;
    }
    long offsets[2];
    loop_places(given.loop, element, offsets);
    uint4 start = uint4(given.counter[0], given.counter[1], given.counter[2], given.counter[3]);
    uint4 words = philox(philox_block(start, element / 4), uint2(given.key[0], given.key[1]));
    output[offsets[1]] = Out(uniform_number(words[element % 4]) < float(p[offsets[0]]) ? 1 : 0);
}

#define BERNOULLI(P, Out)                                                           \
    template [[host_name("bernoulli_" #P "_" #Out)]] kernel void bernoulli<P, Out>( \
        device const P *, device Out *, constant Bernoulli &, uint2, uint2);

#define BERNOULLI_OF(P)  \
    BERNOULLI(P, float)  \
    BERNOULLI(P, half)   \
    BERNOULLI(P, bfloat) \
    BERNOULLI(P, long)   \
    BERNOULLI(P, int)    \
    BERNOULLI(P, uint)   \
    BERNOULLI(P, char)   \
    BERNOULLI(P, uchar)  \
    BERNOULLI(P, bool)

BERNOULLI_OF(float)
BERNOULLI_OF(half)
BERNOULLI_OF(bfloat)
