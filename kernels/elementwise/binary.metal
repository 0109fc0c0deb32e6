// output[i] = f(a[i], b[i]) for every index i of the output's shape, to which a and b are broadcast; f is the function
// constant `operation`. Both operands have one type: the host promotes them before.
//
// float16 and bfloat16 are storage: f is computed in float32 and rounded once. An integer divided by 0 gives 0, and so
// does its remainder.

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

inline float apply(float a, float b) {
    switch (operation) {
    case BINARY_ADD: return a + b;
    case BINARY_SUB: return a - b;
    case BINARY_MUL: return a * b;
    case BINARY_DIV: return a / b;
    case BINARY_FLOOR_DIVIDE: return orchard::floor_divide(a, b);
    case BINARY_TRUNC_DIVIDE: return trunc(a / b);
    case BINARY_REMAINDER: return orchard::remainder(a, b);
    case BINARY_FMOD: return precise::fmod(a, b);
    case BINARY_POW: return precise::pow(a, b);
    case BINARY_MAXIMUM: return a > b || orchard::is_nan(a) ? a : b;
    case BINARY_MINIMUM: return a < b || orchard::is_nan(a) ? a : b;
    case BINARY_ATAN2: return precise::atan2(a, b);
    case BINARY_HYPOT: return orchard::hypot(a, b);
    case BINARY_LOGADDEXP: return orchard::logaddexp(a, b);
    case BINARY_LOGADDEXP2: return orchard::logaddexp2(a, b);
    case BINARY_XLOGY: return orchard::xlogy(a, b);
    case BINARY_POLYGAMMA: return orchard::polygamma(a, b);
    case BINARY_NEXTAFTER: return orchard::next_after(a, b);
    case BINARY_COPYSIGN: return copysign(a, b);
    case BINARY_HEAVISIDE: return a == 0.0f ? b : float(a > 0.0f);
    case BINARY_SWIGLU: return orchard::gated<orchard::LogisticShare>(a) * b;
    case BINARY_GELU_GRADIENT: return a * orchard::gated_derivative<orchard::NormalShare>(b);
    case BINARY_GELU_TANH_GRADIENT: return a * orchard::gated_derivative<orchard::TanhShare>(b);
    case BINARY_SILU_GRADIENT: return a * orchard::gated_derivative<orchard::LogisticShare>(b);
    case BINARY_HARDSWISH_GRADIENT: return b <= -3.0f ? 0.0f : b < 3.0f ? a * ((b + 1.5f) / 3.0f) : a;
    case BINARY_LEAKY: return a > 0.0f ? a : a * b;
    default: return a;
    }
}

// The smallest integer over -1 wraps around.
template <typename T> inline T quotient(T a, T b) {
    return b == T(0) ? T(0) : b == T(-1) && T(-1) < T(0) ? T(0) - a : a / b;
}
template <typename T> inline T rest(T a, T b) { return b == T(0) || (b == T(-1) && T(-1) < T(0)) ? T(0) : a % b; }
template <typename T> inline bool signs_differ(T remainder, T b) {
    return remainder != T(0) && (remainder < T(0)) != (b < T(0));
}

// Modulo 2^bits. A negative exponent leaves 0 of all but 1 and -1.
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

template <typename T> inline T apply_integer(T a, T b) {
    switch (operation) {
    case BINARY_ADD: return a + b;
    case BINARY_SUB: return a - b;
    case BINARY_MUL: return a * b;
    case BINARY_FLOOR_DIVIDE: return quotient(a, b) - T(signs_differ(rest(a, b), b));
    case BINARY_TRUNC_DIVIDE: return quotient(a, b);
    case BINARY_REMAINDER: return rest(a, b) + (signs_differ(rest(a, b), b) ? b : T(0));
    case BINARY_FMOD: return rest(a, b);
    case BINARY_POW: return power(a, b);
    case BINARY_MAXIMUM: return a > b ? a : b;
    case BINARY_MINIMUM: return a < b ? a : b;
    case BINARY_HEAVISIDE: return a == T(0) ? b : T(a > T(0));
    case BINARY_GCD: return orchard::greatest_common_divisor(a, b);
    case BINARY_LCM: return orchard::least_common_multiple(a, b);
    case BINARY_BITWISE_AND: return a & b;
    case BINARY_BITWISE_OR: return a | b;
    case BINARY_BITWISE_XOR: return a ^ b;
    case BINARY_BITWISE_LEFT_SHIFT: return orchard::shifted_left(a, b);
    case BINARY_BITWISE_RIGHT_SHIFT: return orchard::shifted_right(a, b);
    default: return a;
    }
}

inline bool apply_bool(bool a, bool b) {
    switch (operation) {
    case BINARY_ADD:
    case BINARY_HEAVISIDE:
    case BINARY_MAXIMUM:
    case BINARY_BITWISE_OR: return a || b;
    case BINARY_BITWISE_XOR: return a != b;
    default: return a && b;
    }
}

template <typename T> inline bool test(T a, T b) {
    switch (operation) {
    case BINARY_EQ: return a == b;
    case BINARY_NE: return a != b;
    case BINARY_LT: return a < b;
    case BINARY_LE: return a <= b;
    case BINARY_GT: return a > b;
    case BINARY_GE: return a >= b;
    case BINARY_LOGICAL_AND: return a != T(0) && b != T(0);
    case BINARY_LOGICAL_OR: return a != T(0) || b != T(0);
    default: return (a != T(0)) != (b != T(0));
    }
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
    constant LoopNest &loop [[buffer(3)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    const Run own = run_of(loop, position, grid);
    if (own.count == 0) return;
    long places[3];
    run_places(loop, own, places);
    T left[run_width<T>()];
    T right[run_width<T>()];
    T results[run_width<T>()];
    load_run(a, places[0], 0, own.count, left);
    load_run(b, places[1], 1, own.count, right);
    for (uint i = 0; i < run_length(); i += 1) results[i] = Compute<T>::run(left[i], right[i]);
    store_run(output, places[2], results, own.count);
}

// As above, for operations whose result is a bool.
template <typename T>
kernel void binary_predicate(
    device const T *a [[buffer(0)]],
    device const T *b [[buffer(1)]],
    device bool *output [[buffer(2)]],
    constant LoopNest &loop [[buffer(3)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    const Run own = run_of(loop, position, grid);
    if (own.count == 0) return;
    using Number = typename Compute<T>::Number;
    long places[3];
    run_places(loop, own, places);
    T left[run_width<T>()];
    T right[run_width<T>()];
    bool results[run_width<T>()];
    load_run(a, places[0], 0, own.count, left);
    load_run(b, places[1], 1, own.count, right);
    for (uint i = 0; i < run_length(); i += 1) results[i] = test(Number(left[i]), Number(right[i]));
    store_run(output, places[2], results, own.count);
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
