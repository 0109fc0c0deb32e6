// output[i] = f(a[i], b[i]) for every index i of the output's shape, to which a and b are broadcast. f is selected by
// the function constant `operation`. Both operands have the same type, to which the host has promoted them.
//
// float16 and bfloat16 are storage types: f is computed in float32 and rounded once. An integer divided by 0 gives 0,
// and so does its remainder.

#include <metal_stdlib>
using namespace metal;

#include "common/runs.h"
#include "elementwise/binary.h"

constant uint operation [[function_constant(1)]];

// a, b    [[buffer(0, 1)]]  the elements that their strides reach
// output  [[buffer(2)]]     the elements that its strides reach
// loop    [[buffer(3)]]     operands: a, b, output
template <typename T>
kernel void binary(
    device const T *a [[buffer(0)]],
    device const T *b [[buffer(1)]],
    device T *output [[buffer(2)]],
    RUN_ARGUMENTS(3)) {
    const Run run = run_of(loop, position, grid);
    if (run.count == 0) return;
    long places[3];
    run_places(loop, run, places);
    T left[run_width<T>()];
    T right[run_width<T>()];
    T results[run_width<T>()];
    load_run(a, places[0], 0, run.count, left);
    load_run(b, places[1], 1, run.count, right);
    for (uint i = 0; i < run_length(); i += 1) {
        results[i] = orchard::binary::Compute<T>::run(operation, left[i], right[i]);
    }
    store_run(output, places[2], results, run.count);
}

// The kernel for operations whose result is a bool, with the same buffers.
template <typename T>
kernel void binary_predicate(
    device const T *a [[buffer(0)]],
    device const T *b [[buffer(1)]],
    device bool *output [[buffer(2)]],
    RUN_ARGUMENTS(3)) {
    const Run run = run_of(loop, position, grid);
    if (run.count == 0) return;
    using Number = typename orchard::binary::Compute<T>::Number;
    long places[3];
    run_places(loop, run, places);
    T left[run_width<T>()];
    T right[run_width<T>()];
    bool results[run_width<T>()];
    load_run(a, places[0], 0, run.count, left);
    load_run(b, places[1], 1, run.count, right);
    for (uint i = 0; i < run_length(); i += 1) {
        results[i] = orchard::binary::test(operation, Number(left[i]), Number(right[i]));
    }
    store_run(output, places[2], results, run.count);
}

#define BINARY(T)                                                                           \
    template [[host_name("binary_" #T)]] kernel void binary<T>(                             \
        device const T *, device const T *, device T *, constant LoopNest &, uint2, uint2); \
    template [[host_name("binary_predicate_" #T)]] kernel void binary_predicate<T>(         \
        device const T *, device const T *, device bool *, constant LoopNest &, uint2, uint2);

BINARY(float)
BINARY(half)
BINARY(bfloat)
BINARY(long)
BINARY(int)
BINARY(uint)
BINARY(char)
BINARY(uchar)
BINARY(bool)
