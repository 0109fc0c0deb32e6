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
#include "common/runs.h"
#include "common/special.h"
#include "generated/binary.h"

constant uint operation [[function_constant(1)]];

// The result of each operation for floats. An operation that is missing here does not compile.
template <Binary name> struct OfFloats;
#define OF_FLOATS(name, result)                              \
    template <> struct OfFloats<name> {                      \
        static float of(float a, float b) { return result; } \
    };

OF_FLOATS(BINARY_ADD, a + b)
OF_FLOATS(BINARY_SUB, a - b)
OF_FLOATS(BINARY_MUL, (a * b))
OF_FLOATS(BINARY_DIV, a / b)
OF_FLOATS(BINARY_FLOOR_DIVIDE, orchard::floor_divide(a, b))
OF_FLOATS(BINARY_TRUNC_DIVIDE, trunc(a / b))
OF_FLOATS(BINARY_REMAINDER, orchard::remainder(a, b))
OF_FLOATS(BINARY_FMOD, precise::fmod(a, b))
OF_FLOATS(BINARY_POW, precise::pow(a, b))
OF_FLOATS(BINARY_MAXIMUM, a > b || orchard::is_nan(a) ? a : b)
OF_FLOATS(BINARY_MINIMUM, a < b || orchard::is_nan(a) ? a : b)
OF_FLOATS(BINARY_ATAN2, precise::atan2(a, b))
OF_FLOATS(BINARY_HYPOT, orchard::hypot(a, b))
OF_FLOATS(BINARY_LOGADDEXP, orchard::logaddexp(a, b))
OF_FLOATS(BINARY_LOGADDEXP2, orchard::logaddexp2(a, b))
OF_FLOATS(BINARY_XLOGY, orchard::xlogy(a, b))
OF_FLOATS(BINARY_POLYGAMMA, orchard::polygamma(a, b))
OF_FLOATS(BINARY_NEXTAFTER, orchard::next_after(a, b))
OF_FLOATS(BINARY_COPYSIGN, copysign(a, b))
OF_FLOATS(BINARY_HEAVISIDE, a == 0.0f ? b : float(a > 0.0f))
OF_FLOATS(BINARY_SWIGLU, orchard::gated<orchard::LogisticShare>(a) * b)
OF_FLOATS(BINARY_GELU_GRADIENT, orchard::gated_derivative<orchard::NormalShare>(b) * a)
OF_FLOATS(BINARY_GELU_TANH_GRADIENT, orchard::gated_derivative<orchard::TanhShare>(b) * a)
OF_FLOATS(BINARY_SILU_GRADIENT, orchard::gated_derivative<orchard::LogisticShare>(b) * a)
OF_FLOATS(BINARY_HARDSWISH_GRADIENT, b <= -3.0f ? 0.0f : b < 3.0f ? a * ((b + 1.5f) / 3.0f) : a)
OF_FLOATS(BINARY_LEAKY, a > 0.0f ? a : a * b)

inline float apply(float a, float b) {
    switch (operation) { BINARY_FLOATS(ORCHARD_CASE, OfFloats, of(a, b)) }
    return NAN;
}

// The smallest integer divided by -1 wraps around.
template <typename T> inline T quotient(T a, T b) {
    return b == T(0) ? T(0) : b == T(-1) && T(-1) < T(0) ? T(0) - a : a / b;
}
template <typename T> inline T rest(T a, T b) { return b == T(0) || (b == T(-1) && T(-1) < T(0)) ? T(0) : a % b; }
template <typename T> inline bool signs_differ(T remainder, T b) {
    return remainder != T(0) && (remainder < T(0)) != (b < T(0));
}

// The power modulo 2^bits. A negative exponent gives 0, unless the base is 1 or -1.
template <typename T> inline T power(T base, T exponent) {
    if (exponent < T(0)) {
        T sign = (exponent & T(1)) != T(0) ? base : T(1);
        return base == T(1) || base == T(-1) ? sign : T(0);
    }
    T result = T(1);
    T factor = base;
    for (T left = exponent; left != T(0); left >>= 1) {
        if ((left & T(1)) != T(0)) {
            result *= factor;
        }
        factor *= factor;
    }
    return result;
}

template <Binary name> struct OfIntegers;
#define OF_INTEGERS(name, result)                                      \
    template <> struct OfIntegers<name> {                              \
        template <typename T> static T of(T a, T b) { return result; } \
    };

OF_INTEGERS(BINARY_ADD, a + b)
OF_INTEGERS(BINARY_SUB, a - b)
OF_INTEGERS(BINARY_MUL, (a * b))
OF_INTEGERS(BINARY_FLOOR_DIVIDE, quotient(a, b) - T(signs_differ(rest(a, b), b)))
OF_INTEGERS(BINARY_TRUNC_DIVIDE, quotient(a, b))
OF_INTEGERS(BINARY_REMAINDER, rest(a, b) + (signs_differ(rest(a, b), b) ? b : T(0)))
OF_INTEGERS(BINARY_FMOD, rest(a, b))
OF_INTEGERS(BINARY_POW, power(a, b))
OF_INTEGERS(BINARY_MAXIMUM, a > b ? a : b)
OF_INTEGERS(BINARY_MINIMUM, a < b ? a : b)
OF_INTEGERS(BINARY_HEAVISIDE, a == T(0) ? b : T(a > T(0)))
OF_INTEGERS(BINARY_GCD, orchard::greatest_common_divisor(a, b))
OF_INTEGERS(BINARY_LCM, orchard::least_common_multiple(a, b))
OF_INTEGERS(BINARY_BITWISE_AND, (a & b))
OF_INTEGERS(BINARY_BITWISE_OR, a | b)
OF_INTEGERS(BINARY_BITWISE_XOR, a ^ b)
OF_INTEGERS(BINARY_BITWISE_LEFT_SHIFT, orchard::shifted_left(a, b))
OF_INTEGERS(BINARY_BITWISE_RIGHT_SHIFT, orchard::shifted_right(a, b))

template <typename T> inline T apply_integer(T a, T b) {
    switch (operation) { BINARY_INTEGERS(ORCHARD_CASE, OfIntegers, of(a, b)) }
    return T(0);
}

template <Binary name> struct OfBools;
#define OF_BOOLS(name, result)                            \
    template <> struct OfBools<name> {                    \
        static bool of(bool a, bool b) { return result; } \
    };

OF_BOOLS(BINARY_ADD, a || b)
OF_BOOLS(BINARY_MUL, (a && b))
OF_BOOLS(BINARY_MAXIMUM, a || b)
OF_BOOLS(BINARY_MINIMUM, (a && b))
OF_BOOLS(BINARY_HEAVISIDE, a || b)
OF_BOOLS(BINARY_BITWISE_AND, (a && b))
OF_BOOLS(BINARY_BITWISE_OR, a || b)
OF_BOOLS(BINARY_BITWISE_XOR, a != b)

inline bool apply_bool(bool a, bool b) {
    switch (operation) { BINARY_BOOLS(ORCHARD_CASE, OfBools, of(a, b)) }
    return false;
}

template <Binary name> struct Test;
#define TEST(name, result)                                                \
    template <> struct Test<name> {                                       \
        template <typename T> static bool of(T a, T b) { return result; } \
    };

TEST(BINARY_EQ, a == b)
TEST(BINARY_NE, a != b)
TEST(BINARY_LT, a < b)
TEST(BINARY_LE, a <= b)
TEST(BINARY_GT, a > b)
TEST(BINARY_GE, a >= b)
TEST(BINARY_LOGICAL_AND, a != T(0) && b != T(0))
TEST(BINARY_LOGICAL_OR, a != T(0) || b != T(0))
TEST(BINARY_LOGICAL_XOR, (a != T(0)) != (b != T(0)))

template <typename T> inline bool test(T a, T b) {
    switch (operation) { BINARY_TESTS(ORCHARD_CASE, Test, of(a, b)) }
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
