// output[i] = f(input[i]) for every index i of the output's shape. f is selected by the function constant `operation`.
//
// float16 and bfloat16 are storage types: f is computed in float32, some activations with fewer digits (narrow.h), and
// rounded once. Integers are computed in their type.

#include <metal_stdlib>
using namespace metal;

#include "common/runs.h"
#include "elementwise/unary.h"

constant uint operation [[function_constant(1)]];

// input   [[buffer(0)]]  the elements that its strides reach
// output  [[buffer(1)]]  the elements that its strides reach
// loop    [[buffer(2)]]  operands: input, output
template <typename T>
kernel void unary(device const T *input [[buffer(0)]], device T *output [[buffer(1)]], RUN_ARGUMENTS(2)) {
    const Run run = run_of(loop, position, grid);
    if (run.count == 0) return;
    long places[2];
    run_places(loop, run, places);
    T x[run_width<T>()];
    T results[run_width<T>()];
    load_run(input, places[0], 0, run.count, x);
    for (uint i = 0; i < run_length(); i += 1) results[i] = orchard::unary::Compute<T>::run(operation, x[i]);
    store_run(output, places[1], results, run.count);
}

// The kernel for operations whose result is a bool, with the same buffers.
template <typename T>
kernel void unary_predicate(device const T *input [[buffer(0)]], device bool *output [[buffer(1)]], RUN_ARGUMENTS(2)) {
    const Run run = run_of(loop, position, grid);
    if (run.count == 0) return;
    long places[2];
    run_places(loop, run, places);
    T x[run_width<T>()];
    bool results[run_width<T>()];
    load_run(input, places[0], 0, run.count, x);
    using Number = typename orchard::unary::Compute<T>::Number;
    for (uint i = 0; i < run_length(); i += 1) results[i] = orchard::unary::test(operation, Number(x[i]));
    store_run(output, places[1], results, run.count);
}

#define UNARY(T)                                                                  \
    template [[host_name("unary_" #T)]] kernel void unary<T>(                     \
        device const T *, device T *, constant LoopNest &, uint2, uint2);         \
    template [[host_name("unary_predicate_" #T)]] kernel void unary_predicate<T>( \
        device const T *, device bool *, constant LoopNest &, uint2, uint2);

UNARY(float)
UNARY(half)
UNARY(bfloat)
UNARY(long)
UNARY(int)
UNARY(uint)
UNARY(char)
UNARY(uchar)
UNARY(bool)
