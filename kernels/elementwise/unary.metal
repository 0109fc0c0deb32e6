// output[i] = f(input[i]) for every index i of the output's shape; f is the function constant `operation` (codes.h).
//
// float16 and bfloat16 are storage: f is computed in float32 and rounded once. Integers are computed as they are.

#include <metal_stdlib>
using namespace metal;

#include "elementwise/codes.h"
#include "elementwise/loop.h"

constant uint operation [[function_constant(0)]];

inline float apply(float x) {
    switch (operation) {
    case UNARY_NEG: return -x;
    case UNARY_EXP: return precise::exp(x);
    default: return x;
    }
}

template <typename T>
inline T apply_integer(T x) {
    switch (operation) {
    case UNARY_NEG: return T(0) - x;
    default: return x;
    }
}

template <typename T> struct Compute { static T run(T x) { return apply_integer(x); } };
template <> struct Compute<float> { static float run(float x) { return apply(x); } };
template <> struct Compute<half> { static half run(half x) { return half(apply(float(x))); } };
template <> struct Compute<bfloat> { static bfloat run(bfloat x) { return bfloat(apply(float(x))); } };

// input   [[buffer(0)]]  the elements that its strides reach
// output  [[buffer(1)]]  the elements that its strides reach
// loop    [[buffer(2)]]  operands: input, output
template <typename In, typename Out>
kernel void unary(
    device const In *input [[buffer(0)]],
    device Out *output [[buffer(1)]],
    constant LoopNest &loop [[buffer(2)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    ulong element = loop_element(position, grid);
    if (element >= ulong(loop.count)) {
        return;
    }
    long places[2];
    loop_places(loop, element, places);
    output[places[1]] = Out(Compute<In>::run(input[places[0]]));
}

#define UNARY(In, Out) \
    template [[host_name("unary_" #In "_" #Out)]] kernel void unary<In, Out>(device const In *, device Out *, constant LoopNest &, uint2, uint2);

UNARY(float, float)
UNARY(half, half)
UNARY(bfloat, bfloat)
UNARY(long, long)
UNARY(int, int)
UNARY(uint, uint)
UNARY(char, char)
UNARY(uchar, uchar)
