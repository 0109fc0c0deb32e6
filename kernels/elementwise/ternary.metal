// output[i] = f(a[i], b[i], c[i]) for every index i of the output's shape, to which a, b and c are broadcast. f is
// selected by the function constant `operation`. The kernel `where` chooses between b and c by the bool a.
//
// float16 and bfloat16 are storage types: f is computed in float32 and rounded once.

#include <metal_stdlib>
using namespace metal;

#include "common/runs.h"
#include "elementwise/ternary.h"

constant uint operation [[function_constant(1)]];

#define TERNARY_ARGUMENTS(First, first)                                                                        \
    device const First *first [[buffer(0)]], device const T *b [[buffer(1)]], device const T *c [[buffer(2)]], \
        device T *output [[buffer(3)]], RUN_ARGUMENTS(4)

// a, b, c  [[buffer(0, 1, 2)]]  the elements that their strides reach
// output   [[buffer(3)]]        the elements that its strides reach
// loop     [[buffer(4)]]        operands: a, b, c, output
template <typename T> kernel void ternary(TERNARY_ARGUMENTS(T, a)) {
    const Run run = run_of(loop, position, grid);
    if (run.count == 0) return;
    long places[4];
    run_places(loop, run, places);
    T a_run[run_width<T>()];
    T b_run[run_width<T>()];
    T c_run[run_width<T>()];
    T results[run_width<T>()];
    load_run(a, places[0], 0, run.count, a_run);
    load_run(b, places[1], 1, run.count, b_run);
    load_run(c, places[2], 2, run.count, c_run);
    for (uint i = 0; i < run_length(); i += 1) {
        results[i] = orchard::ternary::Compute<T>::run(operation, a_run[i], b_run[i], c_run[i]);
    }
    store_run(output, places[3], results, run.count);
}

// output[i] = condition[i] ? b[i] : c[i]; only the chosen element is read.
template <typename T> kernel void where(TERNARY_ARGUMENTS(bool, condition)) {
    const Run run = run_of(loop, position, grid);
    if (run.count == 0) return;
    long places[4];
    run_places(loop, run, places);
    bool choices[run_width<T>()];
    T results[run_width<T>()];
    load_run(condition, places[0], 0, run.count, choices);
    for (uint i = 0; i < run_length(); i += 1) {
        if (i >= run.count) continue;
        if (choices[i]) {
            results[i] = b[places[1] + run_step(1, i)];
        } else {
            results[i] = c[places[2] + run_step(2, i)];
        }
    }
    store_run(output, places[3], results, run.count);
}

#define WHERE(T)                                              \
    template [[host_name("where_" #T)]] kernel void where<T>( \
        device const bool *, device const T *, device const T *, device T *, constant LoopNest &, uint2, uint2);
#define TERNARY(T)                                                                                            \
    template [[host_name("ternary_" #T)]] kernel void ternary<T>(                                             \
        device const T *, device const T *, device const T *, device T *, constant LoopNest &, uint2, uint2); \
    WHERE(T)

TERNARY(float)
TERNARY(half)
TERNARY(bfloat)
TERNARY(long)
TERNARY(int)
TERNARY(uint)
TERNARY(char)
TERNARY(uchar)
WHERE(bool)
