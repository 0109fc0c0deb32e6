// output[i] = f(input[i]) for every index i of the output's shape. f is selected by the function constant `operation`.
//
// float16 and bfloat16 are storage types: f is computed in float32, some activations with fewer digits (narrow.h), and
// rounded once. Integers are computed in their type.

#include <metal_stdlib>
using namespace metal;

#include "common/bits.h"
#include "common/gamma.h"
#include "common/gated.h"
#include "common/math.h"
#include "common/narrow.h"
#include "common/runs.h"
#include "common/special.h"
#include "formulas/bessel.h"
#include "formulas/bessel_kinds.h"
#include "generated/unary.h"

constant uint operation [[function_constant(1)]];

namespace orchard {
#include "formulas/unary.h"
}

inline float apply(float x) {
    switch (operation) { UNARY_FLOATS(ORCHARD_CASE, orchard::OfFloats, of(x)) }
    return NAN;
}

// Like `apply`, for results that are rounded to 16 bits.
inline float apply_narrow(float x) {
    switch (operation) {
    case UNARY_SIGMOID: return orchard::narrow::sigmoid(x);
    case UNARY_GELU: return orchard::narrow::gelu(x);
    case UNARY_GELU_TANH: return orchard::narrow::gelu_tanh(x);
    case UNARY_SILU: return orchard::narrow::silu(x);
    default: return apply(x);
    }
}

template <typename T> inline T apply_integer(T x) {
    switch (operation) { UNARY_INTEGERS(ORCHARD_CASE, orchard::OfIntegers, of(x)) }
    return T(0);
}

inline bool apply_bool(bool x) {
    switch (operation) { UNARY_BOOLS(ORCHARD_CASE, orchard::OfBools, of(x)) }
    return false;
}

inline bool test(float x) {
    switch (operation) { UNARY_TESTS(ORCHARD_CASE, orchard::Test, of_float(x)) }
    return false;
}
template <typename T> inline bool test(T x) {
    switch (operation) { UNARY_TESTS(ORCHARD_CASE, orchard::Test, of_whole(x)) }
    return false;
}

template <typename T> struct Compute {
    using Number = T;
    static T run(T x) { return apply_integer(x); }
};
template <> struct Compute<bool> {
    using Number = bool;
    static bool run(bool x) { return apply_bool(x); }
};
template <> struct Compute<float> {
    using Number = float;
    static float run(float x) { return apply(x); }
};
template <> struct Compute<half> {
    using Number = float;
    static half run(half x) { return half(apply_narrow(float(x))); }
};
template <> struct Compute<bfloat> {
    using Number = float;
    static bfloat run(bfloat x) { return bfloat(apply_narrow(float(x))); }
};

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
    for (uint i = 0; i < run_length(); i += 1) results[i] = Compute<T>::run(x[i]);
    store_run(output, places[1], results, run.count);
}

// As above, for operations whose result is a bool.
template <typename T>
kernel void unary_predicate(device const T *input [[buffer(0)]], device bool *output [[buffer(1)]], RUN_ARGUMENTS(2)) {
    const Run run = run_of(loop, position, grid);
    if (run.count == 0) return;
    long places[2];
    run_places(loop, run, places);
    T x[run_width<T>()];
    bool results[run_width<T>()];
    load_run(input, places[0], 0, run.count, x);
    for (uint i = 0; i < run_length(); i += 1) results[i] = test(typename Compute<T>::Number(x[i]));
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
