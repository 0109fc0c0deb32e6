// Along every line: softmax    y[k] = exp(x[k] - m) / Σ exp(x - m), m the largest element
//                   logSoftmax y[k] = x[k] - m - log Σ exp(x - m)
// and their gradients from g = ∂L/∂y:
//                   y[k] (g[k] - Σ g y)     and     g[k] - exp(y[k]) Σ g
//
// `LANES` threads share a line and hold up to HELD elements each, so that memory is read once; longer lines (`FITS` = 0) are read a second
// time for the result. The largest element and the sum come in one pass (Milakov and Gimelshein, "Online normalizer calculation for softmax",
// 2018). Computed in float32. A line without a finite largest element is NaN.

#include <metal_stdlib>
using namespace metal;

#include "reduction/groups.h"
#include "reduction/online.h"
#include "scan/lines.h"

enum SoftmaxCode {
    SOFTMAX = 0,
    LOG_SOFTMAX = 1,
    SOFTMAX_GRADIENT = 2,
    LOG_SOFTMAX_GRADIENT = 3,
};

#define HELD 16
constant uint FITS [[function_constant(3)]];

// largest: of the elements; sum: Σ exp(x - largest). Gradients use the sum only.
struct LineState {
    float largest;
    float sum;
};

inline bool is_gradient() { return operation >= SOFTMAX_GRADIENT; }

struct LineMerge {
    static LineState merge(LineState a, LineState b) {
        if (is_gradient()) return {0.0f, a.sum + b.sum};
        float largest = larger(a.largest, b.largest);
        return {largest, rescaled(a.sum, a.largest, largest) + rescaled(b.sum, b.largest, largest)};
    }
    static LineState shuffled(LineState state, ushort mask) {
        if (!is_gradient()) state.largest = shuffled_xor(state.largest, mask);
        state.sum = shuffled_xor(state.sum, mask);
        return state;
    }
};

inline LineState identity() { return {-INFINITY, 0.0f}; }

// x: the element, or the gradient; y: the forward's result, of gradients.
inline LineState lifted(float x, float y) {
    switch (operation) {
    case SOFTMAX_GRADIENT: return {0.0f, x * y};
    case LOG_SOFTMAX_GRADIENT: return {0.0f, x};
    default: return {x, precise::exp(x - shift_of(x))};
    }
}

inline float result_of(float x, float y, LineState state) {
    switch (operation) {
    case SOFTMAX: return isinf(state.largest) ? NAN : precise::exp(x - state.largest) / state.sum;
    case LOG_SOFTMAX: return isinf(state.largest) ? NAN : (x - state.largest) - precise::log(state.sum);
    case SOFTMAX_GRADIENT: return y * (x - state.sum);
    default: return x - precise::exp(y) * state.sum;
    }
}

// All lanes of a line get its state.
inline LineState shared_state(LineState own, threadgroup LineState *scratch, uint thread_index) {
    LineState state = combined<LineMerge>(own, scratch, thread_index);
    if (LANES < 32 && LANES > 1) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        state = scratch[thread_index % COLUMNS];
    }
    return state;
}

template <typename T>
inline void softmax_line(
    device const T *x, device const T *y, device T *out, constant LineParameters &p, threadgroup LineState *scratch,
    uint thread_index, uint group) {
    bool rows = LANES >= 32;
    uint lane = rows ? thread_index % LANES : thread_index / COLUMNS;
    ulong line = ulong(group) * COLUMNS + (rows ? thread_index / LANES : thread_index % COLUMNS);
    long length = line < ulong(p.lines) ? p.length : 0;
    long places[3];
    line_places(p, line, places);
    float held_x[HELD];
    float held_y[HELD];
    LineState own = identity();
    if (FITS) {
        for (uint i = 0; i < HELD; i += 1) {
            long k = long(lane) + i * LANES;
            if (k >= length) break;
            held_x[i] = float(x[places[0] + k * p.along[0]]);
            held_y[i] = is_gradient() ? float(y[places[1] + k * p.along[1]]) : 0.0f;
            own = LineMerge::merge(own, lifted(held_x[i], held_y[i]));
        }
    } else {
        for (long k = lane; k < length; k += LANES) {
            float element_y = is_gradient() ? float(y[places[1] + k * p.along[1]]) : 0.0f;
            own = LineMerge::merge(own, lifted(float(x[places[0] + k * p.along[0]]), element_y));
        }
    }
    LineState state = shared_state(own, scratch, thread_index);
    if (FITS) {
        for (uint i = 0; i < HELD; i += 1) {
            long k = long(lane) + i * LANES;
            if (k >= length) break;
            out[places[2] + k * p.along[2]] = T(result_of(held_x[i], held_y[i], state));
        }
    } else {
        for (long k = lane; k < length; k += LANES) {
            float element_y = is_gradient() ? float(y[places[1] + k * p.along[1]]) : 0.0f;
            out[places[2] + k * p.along[2]] = T(result_of(float(x[places[0] + k * p.along[0]]), element_y, state));
        }
    }
}

// x, y    [[buffer(0, 1)]]  y is x but for gradients
// out     [[buffer(2)]]
// scratch [[threadgroup(0)]]  a state a thread
// grid: threadgroups [lines / COLUMNS] of COLUMNS · LANES threads

#define SOFTMAX_KERNEL(T)                                                                     \
    kernel void softmax_##T(                                                                  \
        device const T *x [[buffer(0)]], device const T *y [[buffer(1)]], device T *out [[buffer(2)]], \
        constant LineParameters &p [[buffer(3)]], threadgroup LineState *scratch [[threadgroup(0)]], \
        uint thread_index [[thread_index_in_threadgroup]], uint group [[threadgroup_position_in_grid]]) { \
        softmax_line(x, y, out, p, scratch, thread_index, group);                             \
    }

SOFTMAX_KERNEL(float)
SOFTMAX_KERNEL(half)
SOFTMAX_KERNEL(bfloat)
