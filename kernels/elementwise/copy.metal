// output[i] = input[i], converted, for every index i of the output's shape.
//
// Conversion to a float rounds to nearest, ties to even. Conversion from a float to an integer truncates; values out of
// range become the nearest integer of the type, and NaN becomes 0, as in Metal's conversions. Conversion to bool is x ≠
// 0.

#include <metal_stdlib>
using namespace metal;

#include "common/runs.h"

// input   [[buffer(0)]]  the elements that its strides reach
// output  [[buffer(1)]]  the elements that its strides reach
// loop    [[buffer(2)]]  operands: input, output
template <typename In, typename Out>
kernel void copy(device const In *input [[buffer(0)]], device Out *output [[buffer(1)]], RUN_ARGUMENTS(2)) {
    const Run run = run_of(loop, position, grid);
    if (run.count == 0) return;
    long places[2];
    run_places(loop, run, places);
    constexpr uint width = sizeof(In) > 2 ? run_width<In>() : run_width<Out>();
    In elements[width];
    Out results[width];
    load_run(input, places[0], 0, run.count, elements);
    for (uint i = 0; i < run_length(); i += 1) results[i] = Out(elements[i]);
    store_run(output, places[1], results, run.count);
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
