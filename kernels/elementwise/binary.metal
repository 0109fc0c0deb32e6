// output[i] = f(a[i], b[i]) for every index i of the output's shape, to which a and b are broadcast. f is selected by
// the function constant `operation`. Both operands have the same type, to which the host has promoted them.
//
// float16 and bfloat16 are storage types: f is computed in float32 and rounded once. An integer divided by 0 gives 0,
// and so does its remainder.

#include <metal_stdlib>
using namespace metal;

#include "common/bits.h"
#include "common/gamma.h"
#include "common/gated.h"
#include "common/math.h"
#include "common/quotients.h"
#include "common/runs.h"
#include "common/special.h"
#include "generated/binary.h"

constant uint operation [[function_constant(1)]];

namespace orchard {
#include "formulas/binary.h"
}

inline float apply(float a, float b) {
    switch (operation) { BINARY_FLOATS(ORCHARD_CASE, orchard::OfFloats, of(a, b)) }
    return NAN;
}

template <typename T> inline T apply_integer(T a, T b) {
    switch (operation) { BINARY_INTEGERS(ORCHARD_CASE, orchard::OfIntegers, of(a, b)) }
    return T(0);
}

inline bool apply_bool(bool a, bool b) {
    switch (operation) { BINARY_BOOLS(ORCHARD_CASE, orchard::OfBools, of(a, b)) }
    return false;
}

template <typename T> inline bool test(T a, T b) {
    switch (operation) { BINARY_TESTS(ORCHARD_CASE, orchard::Test, of_whole(a, b)) }
    return false;
}

template <typename T> struct Compute {
    using Number = T;
    static T run(T a, T b) { return apply_integer(a, b); }
};
template <> struct Compute<bool> {
    using Number = int;
    static bool run(bool a, bool b) { return apply_bool(a, b); }
};
template <> struct Compute<float> {
    using Number = float;
    static float run(float a, float b) { return apply(a, b); }
};
template <> struct Compute<half> {
    using Number = float;
    static half run(half a, half b) {
        return operation == BINARY_NEXTAFTER ? orchard::next_after(a, b) : half(apply(float(a), float(b)));
    }
};
template <> struct Compute<bfloat> {
    using Number = float;
    static bfloat run(bfloat a, bfloat b) {
        return operation == BINARY_NEXTAFTER ? orchard::next_after(a, b) : bfloat(apply(float(a), float(b)));
    }
};

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
    for (uint i = 0; i < run_length(); i += 1) results[i] = Compute<T>::run(left[i], right[i]);
    store_run(output, places[2], results, run.count);
}

// As above, for operations whose result is a bool.
template <typename T>
kernel void binary_predicate(
    device const T *a [[buffer(0)]],
    device const T *b [[buffer(1)]],
    device bool *output [[buffer(2)]],
    RUN_ARGUMENTS(3)) {
    const Run run = run_of(loop, position, grid);
    if (run.count == 0) return;
    using Number = typename Compute<T>::Number;
    long places[3];
    run_places(loop, run, places);
    T left[run_width<T>()];
    T right[run_width<T>()];
    bool results[run_width<T>()];
    load_run(a, places[0], 0, run.count, left);
    load_run(b, places[1], 1, run.count, right);
    for (uint i = 0; i < run_length(); i += 1) results[i] = test(Number(left[i]), Number(right[i]));
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
