// The gradients of silu(gate) up, where silu(x) = x / (1 + e^-x), in one pass:
//
//   gate_gradient = g up silu'(gate)        up_gradient = g silu(gate)
//
// One thread an element; g, gate and up may have any strides. float16 and bfloat16 are storage: sums and products are
// float32, rounded once.

#include <metal_stdlib>
using namespace metal;

#include "common/gated.h"
#include "common/loop.h"

// g, gate, up    [[buffer(0, 1, 2)]]  the elements that their strides reach
// gate_gradient  [[buffer(3)]]        dense
// up_gradient    [[buffer(4)]]        dense, with the strides of gate_gradient
// loop           [[buffer(5)]]        operands: g, gate, up, gate_gradient
template <typename T>
kernel void swiglu_gradient(
    device const T *g [[buffer(0)]],
    device const T *gate [[buffer(1)]],
    device const T *up [[buffer(2)]],
    device T *gate_gradient [[buffer(3)]],
    device T *up_gradient [[buffer(4)]],
    constant LoopNest &loop [[buffer(5)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    ulong element = loop_element(position, grid);
    if (element >= ulong(loop.count)) {
        return;
    }
    long places[4];
    loop_places(loop, element, places);
    float incoming = float(g[places[0]]);
    float x = float(gate[places[1]]);
    gate_gradient[places[3]] =
        T(incoming * float(up[places[2]]) * orchard::gated_derivative<orchard::LogisticShare>(x));
    up_gradient[places[3]] = T(incoming * orchard::gated<orchard::LogisticShare>(x));
}

#define SWIGLU_GRADIENT(T)                                                                                        \
    template [[host_name("swiglu_gradient_" #T)]] kernel void swiglu_gradient<T>(                                 \
        device const T *, device const T *, device const T *, device T *, device T *, constant LoopNest &, uint2, \
        uint2);

SWIGLU_GRADIENT(float)
SWIGLU_GRADIENT(half)
SWIGLU_GRADIENT(bfloat)
