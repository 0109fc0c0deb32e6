// output[i] = f(input[i]) for every index i of the output's shape; f is the function constant `operation`.
//
// float16 and bfloat16 are storage: f is computed in float32, of some activations with fewer digits (narrow.h), and
// rounded once. Integers are computed as they are.

#include <metal_stdlib>
using namespace metal;

#include "common/bessel.h"
#include "common/gamma.h"
#include "common/gated.h"
#include "common/math.h"
#include "common/narrow.h"
#include "common/runs.h"
#include "common/special.h"
#include "generated/unary.h"

constant uint operation [[function_constant(1)]];

inline float apply(float x) {
    switch (operation) {
    case UNARY_NEG: return -x;
    case UNARY_ABS: return fabs(x);
    case UNARY_SIGN: return float(x > 0.0f) - float(x < 0.0f);
    case UNARY_SQUARE: return x * x;
    case UNARY_RELU: return x < 0.0f ? 0.0f : x;
    case UNARY_FLOOR: return floor(x);
    case UNARY_CEIL: return ceil(x);
    case UNARY_ROUND: return rint(x);
    case UNARY_TRUNC: return trunc(x);
    case UNARY_FRAC: return x - trunc(x);
    case UNARY_RECIPROCAL: return 1.0f / x;
    case UNARY_SQRT: return precise::sqrt(x);
    case UNARY_RSQRT: return precise::rsqrt(x);
    case UNARY_EXP: return precise::exp(x);
    case UNARY_EXP2: return precise::exp2(x);
    case UNARY_EXPM1: return orchard::expm1(x);
    case UNARY_LOG: return precise::log(x);
    case UNARY_LOG2: return precise::log2(x);
    case UNARY_LOG10: return precise::log10(x);
    case UNARY_LOG1P: return orchard::log1p(x);
    case UNARY_TANH: return precise::tanh(x);
    case UNARY_SIGMOID: return orchard::sigmoid(x);
    case UNARY_ERF: return orchard::erf(x);
    case UNARY_SIN: return precise::sin(x);
    case UNARY_COS: return precise::cos(x);
    case UNARY_TAN: return precise::tan(x);
    case UNARY_ASIN: return precise::asin(x);
    case UNARY_ACOS: return precise::acos(x);
    case UNARY_ATAN: return precise::atan(x);
    case UNARY_SINH: return precise::sinh(x);
    case UNARY_COSH: return precise::cosh(x);
    case UNARY_ASINH: return precise::asinh(x);
    case UNARY_ACOSH: return precise::acosh(x);
    case UNARY_ATANH: return precise::atanh(x);
    case UNARY_ERFC: return orchard::erfc(x);
    case UNARY_ERFINV: return orchard::erfinv(x);
    case UNARY_LGAMMA: return orchard::lgamma(x);
    case UNARY_DIGAMMA: return orchard::digamma(x);
    case UNARY_SINC: return orchard::sinc(x);
    case UNARY_I0: return orchard::bessel<0>(x);
    case UNARY_I1: return orchard::bessel<1>(x);
    case UNARY_GELU: return orchard::gated<orchard::NormalShare>(x);
    case UNARY_GELU_TANH: return orchard::gated<orchard::TanhShare>(x);
    case UNARY_SILU: return orchard::gated<orchard::LogisticShare>(x);
    case UNARY_HARDSWISH: return x * (min(max(x + 3.0f, 0.0f), 6.0f) / 6.0f);
    case UNARY_HARDSIGMOID: return orchard::is_nan(x) ? x : min(max(x + 3.0f, 0.0f), 6.0f) / 6.0f;
    case UNARY_SOFTSIGN: return x / (1.0f + fabs(x));
    case UNARY_MISH: return orchard::mish(x);
    case UNARY_LOG_SIGMOID: return orchard::log_sigmoid(x);
    case UNARY_TANHSHRINK: return orchard::tanhshrink(x);
    default: return x;
    }
}

// As `apply`, where the result is rounded to 16 bits.
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
    switch (operation) {
    case UNARY_NEG: return T(0) - x;
    case UNARY_ABS: return x < T(0) ? T(0) - x : x;
    case UNARY_SIGN: return T(x > T(0)) - T(x < T(0));
    case UNARY_SQUARE: return x * x;
    case UNARY_RELU: return x < T(0) ? T(0) : x;
    case UNARY_FRAC: return T(0);
    case UNARY_BITWISE_NOT: return T(~x);
    default: return x;  // rounded it is already
    }
}

template <typename T> inline bool test(T x) {
    switch (operation) {
    case UNARY_LOGICAL_NOT: return x == T(0);
    case UNARY_ISNAN: return orchard::is_nan(x);
    case UNARY_SIGNBIT: return x < T(0);
    default: return false;
    }
}

inline bool test_float(float x) {
    switch (operation) {
    case UNARY_ISINF: return fabs(x) == INFINITY;
    case UNARY_ISFINITE: return fabs(x) < INFINITY;
    case UNARY_SIGNBIT: return signbit(x);
    default: return test(x);
    }
}

template <typename T> struct Compute {
    static T run(T x) { return apply_integer(x); }
    static bool predicate(T x) { return operation == UNARY_ISFINITE || test(x); }
};
template <> struct Compute<bool> {
    static bool run(bool x) { return operation == UNARY_BITWISE_NOT ? !x : x; }
    static bool predicate(bool x) { return operation == UNARY_ISFINITE || (operation == UNARY_LOGICAL_NOT && !x); }
};
template <> struct Compute<float> {
    static float run(float x) { return apply(x); }
    static bool predicate(float x) { return test_float(x); }
};
template <> struct Compute<half> {
    static half run(half x) { return half(apply_narrow(float(x))); }
    static bool predicate(half x) { return test_float(float(x)); }
};
template <> struct Compute<bfloat> {
    static bfloat run(bfloat x) { return bfloat(apply_narrow(float(x))); }
    static bool predicate(bfloat x) { return test_float(float(x)); }
};

// input   [[buffer(0)]]  the elements that its strides reach
// output  [[buffer(1)]]  the elements that its strides reach
// loop    [[buffer(2)]]  operands: input, output
template <typename T>
kernel void unary(
    device const T *input [[buffer(0)]],
    device T *output [[buffer(1)]],
    constant LoopNest &loop [[buffer(2)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    const Run own = run_of(loop, position, grid);
    if (own.count == 0) return;
    long places[2];
    run_places(loop, own, places);
    T x[run_width<T>()];
    T results[run_width<T>()];
    load_run(input, places[0], 0, own.count, x);
    for (uint i = 0; i < run_length(); i += 1) results[i] = Compute<T>::run(x[i]);
    store_run(output, places[1], results, own.count);
}

// As above, for operations whose result is a bool.
template <typename T>
kernel void unary_predicate(
    device const T *input [[buffer(0)]],
    device bool *output [[buffer(1)]],
    constant LoopNest &loop [[buffer(2)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    const Run own = run_of(loop, position, grid);
    if (own.count == 0) return;
    long places[2];
    run_places(loop, own, places);
    T x[run_width<T>()];
    bool results[run_width<T>()];
    load_run(input, places[0], 0, own.count, x);
    for (uint i = 0; i < run_length(); i += 1) results[i] = Compute<T>::predicate(x[i]);
    store_run(output, places[1], results, own.count);
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
