// The gradients of silu(gate) up, where silu(x) = x / (1 + e^-x), in one pass:
//
//   gate_gradient = g up silu'(gate)        up_gradient = g silu(gate)
//
// A thread processes a run of elements; g, gate and up may have any strides. float16 and bfloat16 are storage types:
// the arithmetic is in float32, and results are rounded once.

#include <metal_stdlib>
using namespace metal;

#include "common/gated.h"
#include "common/runs.h"

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
    RUN_ARGUMENTS(5)) {
    const Run run = run_of(loop, position, grid);
    if (run.count == 0) return;
    long places[4];
    run_places(loop, run, places);
    T incoming[run_width<T>()];
    T gates[run_width<T>()];
    T ups[run_width<T>()];
    T of_gate[run_width<T>()];
    T of_up[run_width<T>()];
    load_run(g, places[0], 0, run.count, incoming);
    load_run(gate, places[1], 1, run.count, gates);
    load_run(up, places[2], 2, run.count, ups);
    for (uint i = 0; i < run_length(); i += 1) {
        const float factor = float(incoming[i]);
        const float x = float(gates[i]);
        of_gate[i] = T(factor * float(ups[i]) * orchard::gated_derivative<orchard::LogisticShare>(x));
        of_up[i] = T(factor * orchard::gated<orchard::LogisticShare>(x));
    }
    store_run(gate_gradient, places[3], of_gate, run.count);
    store_run(up_gradient, places[3], of_up, run.count);
}

#define SWIGLU_GRADIENT(T)                                                                                        \
    template [[host_name("swiglu_gradient_" #T)]] kernel void swiglu_gradient<T>(                                 \
        device const T *, device const T *, device const T *, device T *, device T *, constant LoopNest &, uint2, \
        uint2);

SWIGLU_GRADIENT(float)
SWIGLU_GRADIENT(half)
SWIGLU_GRADIENT(bfloat)
