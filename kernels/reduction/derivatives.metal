// Local derivatives of reductions, which depend on an element x and its result y; the function constant `operation` (a
// `ReductionDerivative`) selects one. `select_at` gives x if an element's index along an axis is the given index, else
// 0.

#include <metal_stdlib>
using namespace metal;

#include "common/loop.h"
#include "generated/derivative_parameters.h"
#include "generated/reduction_derivative.h"
#include "generated/select_at.h"

constant uint operation [[function_constant(0)]];

inline bool is_tie(float x, float y) { return x == y || (x != x && y != y); }

// A derivative that is missing here does not compile.
template <ReductionDerivative name> struct Derivative;
#define DERIVATIVE(name, result)                                      \
    template <> struct Derivative<name> {                             \
        static float of(float x, float y, float p) { return result; } \
    };

DERIVATIVE(REDUCTION_DERIVATIVE_TIE, is_tie(x, y) ? 1.0f : 0.0f)
DERIVATIVE(REDUCTION_DERIVATIVE_SIGN, x != x ? x : sign(x))
DERIVATIVE(REDUCTION_DERIVATIVE_QUOTIENT, y == 0.0f ? 0.0f : x / y)
DERIVATIVE(REDUCTION_DERIVATIVE_POWER, x == 0.0f || y == 0.0f ? 0.0f : sign(x) * precise::pow(abs(x / y), p - 1.0f))

inline float derivative_of(float x, float y, float p) {
    switch (operation) { REDUCTION_DERIVATIVE_NAMES(ORCHARD_CASE, Derivative, of(x, y, p)) }
    return NAN;
}

template <typename T>
inline void derivative(
    device const T *x, device const T *y, device T *output, constant DerivativeParameters &p, ulong element) {
    if (element >= ulong(p.loop.count)) return;
    long offsets[3];
    loop_places(p.loop, element, offsets);
    output[offsets[2]] = T(derivative_of(float(x[offsets[0]]), float(y[offsets[1]]), p.parameter));
}

template <typename T>
inline void select_at(
    device const T *x, device const long *indices, device T *output, constant SelectAt &p, ulong element) {
    if (element >= ulong(p.loop.count)) return;
    long offsets[3];
    loop_places(p.loop, element, offsets);
    long index = long(element / ulong(p.inner) % ulong(p.size));
    output[offsets[2]] = indices[offsets[1]] == index ? x[offsets[0]] : T(0);
}

#define DERIVATIVES(T)                                                                                             \
    kernel void derivative_##T(                                                                                    \
        device const T *x [[buffer(0)]], device const T *y [[buffer(1)]], device T *output [[buffer(2)]],          \
        constant DerivativeParameters &p [[buffer(3)]], uint2 position [[thread_position_in_grid]],                \
        uint2 grid [[threads_per_grid]]) {                                                                         \
        derivative(x, y, output, p, loop_element(position, grid));                                                 \
    }                                                                                                              \
    kernel void select_at_##T(                                                                                     \
        device const T *x [[buffer(0)]], device const long *indices [[buffer(1)]], device T *output [[buffer(2)]], \
        constant SelectAt &p [[buffer(3)]], uint2 position [[thread_position_in_grid]],                            \
        uint2 grid [[threads_per_grid]]) {                                                                         \
        select_at(x, indices, output, p, loop_element(position, grid));                                            \
    }

DERIVATIVES(float)
DERIVATIVES(half)
DERIVATIVES(bfloat)
