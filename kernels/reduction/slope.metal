// Functions of an element x of a reduction and of its result y, of which gradients are made: the function constant `operation` says which
// (`slopeNames` in src/ops/reduction/names.ts). And `select_at`: x where an element's place along an axis is the index there, else 0.

#include <metal_stdlib>
using namespace metal;

#include "common/loop.h"

enum SlopeCode {
    SLOPE_TIE = 0,
    SLOPE_SIGN = 1,
    SLOPE_QUOTIENT = 2,
    SLOPE_POWER = 3,
};

constant uint operation [[function_constant(0)]];

struct SlopeParameters {
    LoopNest loop;     // operands: x, y, output
    float parameter;   // p of a power
    float padding;
};

struct SelectParameters {
    LoopNest loop;     // operands: x, indices, output
    long size;         // of the axis
    long inner;        // elements of the output from one of its indices to the next
};

inline bool is_tie(float x, float y) { return x == y || (x != x && y != y); }

inline float slope_of(float x, float y, float p) {
    switch (operation) {
    case SLOPE_TIE: return is_tie(x, y) ? 1.0f : 0.0f;
    case SLOPE_SIGN: return x != x ? x : sign(x);
    case SLOPE_QUOTIENT: return y == 0.0f ? 0.0f : x / y;
    case SLOPE_POWER:
        return x == 0.0f || y == 0.0f ? 0.0f : sign(x) * precise::pow(abs(x), p - 1.0f) * precise::pow(y, 1.0f - p);
    default: return 0.0f;
    }
}

template <typename T>
inline void slope(device const T *x, device const T *y, device T *output, constant SlopeParameters &p, ulong element) {
    if (element >= ulong(p.loop.count)) return;
    long places[3];
    loop_places(p.loop, element, places);
    output[places[2]] = T(slope_of(float(x[places[0]]), float(y[places[1]]), p.parameter));
}

template <typename T>
inline void select_at(device const T *x, device const long *indices, device T *output, constant SelectParameters &p, ulong element) {
    if (element >= ulong(p.loop.count)) return;
    long places[3];
    loop_places(p.loop, element, places);
    long place = long(element / ulong(p.inner) % ulong(p.size));
    output[places[2]] = indices[places[1]] == place ? x[places[0]] : T(0);
}

#define SLOPES(T)                                                                             \
    kernel void slope_##T(                                                                    \
        device const T *x [[buffer(0)]], device const T *y [[buffer(1)]], device T *output [[buffer(2)]], \
        constant SlopeParameters &p [[buffer(3)]],                                            \
        uint2 position [[thread_position_in_grid]], uint2 grid [[threads_per_grid]]) {        \
        slope(x, y, output, p, loop_element(position, grid));                                 \
    }                                                                                         \
    kernel void select_at_##T(                                                                \
        device const T *x [[buffer(0)]], device const long *indices [[buffer(1)]], device T *output [[buffer(2)]], \
        constant SelectParameters &p [[buffer(3)]],                                           \
        uint2 position [[thread_position_in_grid]], uint2 grid [[threads_per_grid]]) {        \
        select_at(x, indices, output, p, loop_element(position, grid));                       \
    }

SLOPES(float)
SLOPES(half)
SLOPES(bfloat)
