// output[i] = f(input[i]) for every index i of the output's shape. f is selected by the function constant `operation`.
//
// float16 and bfloat16 are storage types: f is computed in float32, some activations with fewer digits (narrow.h), and
// rounded once. Integers are computed in their type.

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

// The result of each operation for a float. An operation that is missing here does not compile.
template <Unary name> struct OfFloat;
#define OF_FLOAT(name, result)                      \
    template <> struct OfFloat<name> {              \
        static float of(float x) { return result; } \
    };

OF_FLOAT(UNARY_NEG, -x)
OF_FLOAT(UNARY_ABS, fabs(x))
OF_FLOAT(UNARY_SIGN, float(x > 0.0f) - float(x < 0.0f))
OF_FLOAT(UNARY_SQUARE, (x * x))
OF_FLOAT(UNARY_RELU, x < 0.0f ? 0.0f : x)
OF_FLOAT(UNARY_FLOOR, floor(x))
OF_FLOAT(UNARY_CEIL, ceil(x))
OF_FLOAT(UNARY_ROUND, rint(x))
OF_FLOAT(UNARY_TRUNC, trunc(x))
OF_FLOAT(UNARY_FRAC, x - trunc(x))
OF_FLOAT(UNARY_RECIPROCAL, 1.0f / x)
OF_FLOAT(UNARY_SQRT, precise::sqrt(x))
OF_FLOAT(UNARY_RSQRT, precise::rsqrt(x))
OF_FLOAT(UNARY_EXP, precise::exp(x))
OF_FLOAT(UNARY_EXP2, precise::exp2(x))
OF_FLOAT(UNARY_EXPM1, orchard::expm1(x))
OF_FLOAT(UNARY_LOG, precise::log(x))
OF_FLOAT(UNARY_LOG2, precise::log2(x))
OF_FLOAT(UNARY_LOG10, precise::log10(x))
OF_FLOAT(UNARY_LOG1P, orchard::log1p(x))
OF_FLOAT(UNARY_TANH, precise::tanh(x))
OF_FLOAT(UNARY_SIGMOID, orchard::sigmoid(x))
OF_FLOAT(UNARY_ERF, orchard::erf(x))
OF_FLOAT(UNARY_SIN, precise::sin(x))
OF_FLOAT(UNARY_COS, precise::cos(x))
OF_FLOAT(UNARY_TAN, precise::tan(x))
OF_FLOAT(UNARY_ASIN, precise::asin(x))
OF_FLOAT(UNARY_ACOS, precise::acos(x))
OF_FLOAT(UNARY_ATAN, precise::atan(x))
OF_FLOAT(UNARY_SINH, precise::sinh(x))
OF_FLOAT(UNARY_COSH, precise::cosh(x))
OF_FLOAT(UNARY_ASINH, precise::asinh(x))
OF_FLOAT(UNARY_ACOSH, precise::acosh(x))
OF_FLOAT(UNARY_ATANH, precise::atanh(x))
OF_FLOAT(UNARY_ERFC, orchard::erfc(x))
OF_FLOAT(UNARY_ERFINV, orchard::erfinv(x))
OF_FLOAT(UNARY_LGAMMA, orchard::lgamma(x))
OF_FLOAT(UNARY_DIGAMMA, orchard::digamma(x))
OF_FLOAT(UNARY_SINC, orchard::sinc(x))
OF_FLOAT(UNARY_I0, orchard::bessel<0>(x))
OF_FLOAT(UNARY_I1, orchard::bessel<1>(x))
OF_FLOAT(UNARY_GELU, orchard::gated<orchard::NormalShare>(x))
OF_FLOAT(UNARY_GELU_TANH, orchard::gated<orchard::TanhShare>(x))
OF_FLOAT(UNARY_SILU, orchard::gated<orchard::LogisticShare>(x))
OF_FLOAT(UNARY_HARDSWISH, min(max(x + 3.0f, 0.0f), 6.0f) / 6.0f * x)
OF_FLOAT(UNARY_HARDSIGMOID, orchard::is_nan(x) ? x : min(max(x + 3.0f, 0.0f), 6.0f) / 6.0f)
OF_FLOAT(UNARY_SOFTSIGN, x / (1.0f + fabs(x)))
OF_FLOAT(UNARY_MISH, orchard::mish(x))
OF_FLOAT(UNARY_LOG_SIGMOID, orchard::log_sigmoid(x))
OF_FLOAT(UNARY_TANHSHRINK, orchard::tanhshrink(x))

inline float apply(float x) {
    switch (operation) { UNARY_FLOATS(ORCHARD_CASE, OfFloat, of(x)) }
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

template <Unary name> struct OfInteger;
#define OF_INTEGER(name, result)                                  \
    template <> struct OfInteger<name> {                          \
        template <typename T> static T of(T x) { return result; } \
    };

OF_INTEGER(UNARY_NEG, T(0) - x)
OF_INTEGER(UNARY_ABS, x < T(0) ? T(0) - x : x)
OF_INTEGER(UNARY_SIGN, T(x > T(0)) - T(x < T(0)))
OF_INTEGER(UNARY_SQUARE, (x * x))
OF_INTEGER(UNARY_RELU, x < T(0) ? T(0) : x)
OF_INTEGER(UNARY_FLOOR, x)
OF_INTEGER(UNARY_CEIL, x)
OF_INTEGER(UNARY_ROUND, x)
OF_INTEGER(UNARY_TRUNC, x)
OF_INTEGER(UNARY_FRAC, T(0))
OF_INTEGER(UNARY_BITWISE_NOT, T(~x))

template <typename T> inline T apply_integer(T x) {
    switch (operation) { UNARY_INTEGERS(ORCHARD_CASE, OfInteger, of(x)) }
    return T(0);
}

template <Unary name> struct OfBool;
template <> struct OfBool<UNARY_SIGN> {
    static bool of(bool x) { return x; }
};
template <> struct OfBool<UNARY_BITWISE_NOT> {
    static bool of(bool x) { return !x; }
};

inline bool apply_bool(bool x) {
    switch (operation) { UNARY_BOOLS(ORCHARD_CASE, OfBool, of(x)) }
    return false;
}

// Each predicate, for floats, and for integers and bools.
template <Unary name> struct Test;
#define TEST(name, of_float, of_integer)                                 \
    template <> struct Test<name> {                                      \
        static bool of(float x) { return of_float; }                     \
        template <typename T> static bool of(T x) { return of_integer; } \
    };

TEST(UNARY_LOGICAL_NOT, x == 0.0f, x == T(0))
TEST(UNARY_ISNAN, orchard::is_nan(x), false)
TEST(UNARY_ISINF, fabs(x) == INFINITY, false)
TEST(UNARY_ISFINITE, fabs(x) < INFINITY, true)
TEST(UNARY_SIGNBIT, signbit(x), x < T(0))

template <typename T> inline bool test(T x) {
    switch (operation) { UNARY_TESTS(ORCHARD_CASE, Test, of(x)) }
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
