// output[i] = input[i], converted, for every index i of the output's shape.
//
// Floats round to the nearest, ties to even. A float becomes an integer by truncation, out of range the nearest that
// there is and NaN 0, which is Metal's own conversion. bool is x ≠ 0.

#include <metal_stdlib>
using namespace metal;

#include "common/quads.h"

// input   [[buffer(0)]]  the elements that its strides reach
// output  [[buffer(1)]]  the elements that its strides reach
// loop    [[buffer(2)]]  operands: input, output
template <typename In, typename Out>
kernel void copy(
    device const In *input [[buffer(0)]],
    device Out *output [[buffer(1)]],
    constant LoopNest &loop [[buffer(2)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    const Quad quad = quad_of(loop, position, grid);
    if (quad.count == 0) return;
    long places[2];
    quad_places(loop, quad, places);
    const vec<In, 4> elements = load_quad(input, places[0], 0, quad.count);
    vec<Out, 4> results;
    for (uint i = 0; i < 4; i += 1) {
        if (i < quad.count) results[i] = Out(elements[i]);
    }
    store_quad(output, places[1], results, quad.count);
}

#define COPY(In, Out)                                                       \
    template [[host_name("copy_" #In "_" #Out)]] kernel void copy<In, Out>( \
        device const In *, device Out *, constant LoopNest &, uint2, uint2);

#define COPY_FROM(In) \
    COPY(In, float)   \
    COPY(In, half)    \
    COPY(In, bfloat)  \
    COPY(In, long)    \
    COPY(In, int)     \
    COPY(In, uint)    \
    COPY(In, char)    \
    COPY(In, uchar)   \
    COPY(In, bool)

COPY_FROM(float)
COPY_FROM(half)
COPY_FROM(bfloat)
COPY_FROM(long)
COPY_FROM(int)
COPY_FROM(uint)
COPY_FROM(char)
COPY_FROM(uchar)
COPY_FROM(bool)
