// output[i] = f(a[i], b[i]) for every index i of the output's shape, to which a and b are broadcast; f is the function constant
// `operation` (codes.h). Both operands have one type: the host promotes them before.
//
// float16 and bfloat16 are storage: f is computed in float32 and rounded once.

#include <metal_stdlib>
using namespace metal;

#include "elementwise/codes.h"
#include "elementwise/loop.h"

constant uint operation [[function_constant(0)]];

template <typename T>
inline T apply(T a, T b) {
    switch (operation) {
    case BINARY_ADD: return a + b;
    case BINARY_SUB: return a - b;
    case BINARY_MUL: return a * b;
    case BINARY_DIV: return a / b;
    default: return a;
    }
}

template <typename T> struct Arithmetic { using type = T; };
template <> struct Arithmetic<half> { using type = float; };
template <> struct Arithmetic<bfloat> { using type = float; };

// a, b    [[buffer(0, 1)]]  the elements that their strides reach
// output  [[buffer(2)]]     the elements that its strides reach
// loop    [[buffer(3)]]     operands: a, b, output
template <typename In, typename Out>
kernel void binary(
    device const In *a [[buffer(0)]],
    device const In *b [[buffer(1)]],
    device Out *output [[buffer(2)]],
    constant LoopNest &loop [[buffer(3)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    ulong element = loop_element(position, grid);
    if (element >= ulong(loop.count)) {
        return;
    }
    using Number = typename Arithmetic<In>::type;
    long places[3];
    loop_places(loop, element, places);
    output[places[2]] = Out(apply(Number(a[places[0]]), Number(b[places[1]])));
}

#define BINARY(In, Out)                                                                                        \
    template [[host_name("binary_" #In "_" #Out)]] kernel void binary<In, Out>(                                \
        device const In *, device const In *, device Out *, constant LoopNest &, uint2, uint2);

BINARY(float, float)
BINARY(half, half)
BINARY(bfloat, bfloat)
BINARY(long, long)
BINARY(int, int)
BINARY(uint, uint)
BINARY(char, char)
BINARY(uchar, uchar)
