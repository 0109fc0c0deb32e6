// Along every slice: softmax    y[k] = exp(x[k] - m) / Σ exp(x - m), m the largest element
//                    logSoftmax y[k] = x[k] - m - log Σ exp(x - m)
// and their gradients from g = ∂L/∂y:
//                    y[k] (g[k] - Σ g y)     and     g[k] - exp(y[k]) Σ g
//
// `LANES` threads share a slice and hold up to HELD elements each, so that memory is read once; longer slices (`FITS` =
// 0) are read a second time for the result. The largest element and the sum come in one pass (Milakov and Gimelshein,
// "Online normalizer calculation for softmax", 2018). Computed in float32. A slice without a finite largest element is
// NaN.

#include <metal_stdlib>
using namespace metal;

#include "common/slices.h"
#include "generated/softmax.h"
#include "reduction/groups.h"
#include "reduction/online.h"

#define HELD 16
constant uint FITS [[function_constant(3)]];

// largest: of the elements; sum: Σ exp(x - largest). Gradients use the sum only.
struct SliceState {
    float largest;
    float sum;
};

inline bool is_gradient() { return operation == SOFTMAX_SOFTMAX_GRADIENT || operation == SOFTMAX_LOG_SOFTMAX_GRADIENT; }

struct SliceMerge {
    static SliceState merge(SliceState a, SliceState b) {
        if (is_gradient()) return {0.0f, a.sum + b.sum};
        float largest = larger(a.largest, b.largest);
        return {largest, rescaled(a.sum, a.largest, largest) + rescaled(b.sum, b.largest, largest)};
    }
    static SliceState shuffled(SliceState state, ushort mask) {
        if (!is_gradient()) state.largest = shuffled_xor(state.largest, mask);
        state.sum = shuffled_xor(state.sum, mask);
        return state;
    }
};

inline SliceState identity() { return {-INFINITY, 0.0f}; }

// The state of one element. x: the element, or the gradient; y: the result of the forward pass, for gradients.
inline SliceState state_of(float x, float y) {
    switch (operation) {
    case SOFTMAX_SOFTMAX_GRADIENT: return {0.0f, x * y};
    case SOFTMAX_LOG_SOFTMAX_GRADIENT: return {0.0f, x};
    default: return {x, precise::exp(x - shift_of(x))};
    }
}

inline float result_of(float x, float y, SliceState state) {
    switch (operation) {
    case SOFTMAX_SOFTMAX: return isinf(state.largest) ? NAN : precise::exp(x - state.largest) / state.sum;
    case SOFTMAX_LOG_SOFTMAX: return isinf(state.largest) ? NAN : (x - state.largest) - precise::log(state.sum);
    case SOFTMAX_SOFTMAX_GRADIENT: return y * (x - state.sum);
    default: return x - precise::exp(y) * state.sum;
    }
}

// All lanes of a slice get its state.
inline SliceState shared_state(SliceState own, threadgroup SliceState *scratch, uint thread_index) {
    SliceState state = combined<SliceMerge>(own, scratch, thread_index);
    if (LANES < 32 && LANES > 1) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        state = scratch[thread_index % COLUMNS];
    }
    return state;
}

template <typename T>
inline void softmax_slice(
    device const T *x,
    device const T *y,
    device T *out,
    constant Slices<3> &slices,
    threadgroup SliceState *scratch,
    uint thread_index,
    uint group) {
    bool rows = LANES >= 32;
    uint lane = rows ? thread_index % LANES : thread_index / COLUMNS;
    ulong slice = ulong(group) * COLUMNS + (rows ? thread_index / LANES : thread_index % COLUMNS);
    long length = slice < ulong(slices.nest.count) ? slices.length : 0;
    long offsets[3];
    slice_offsets(slices, slice, offsets);
    float held_x[HELD];
    float held_y[HELD];
    SliceState own = identity();
    if (FITS) {
        for (uint i = 0; i < HELD; i += 1) {
            long k = long(lane) + i * LANES;
            if (k >= length) break;
            held_x[i] = float(x[offsets[0] + k * slices.along[0]]);
            held_y[i] = is_gradient() ? float(y[offsets[1] + k * slices.along[1]]) : 0.0f;
            own = SliceMerge::merge(own, state_of(held_x[i], held_y[i]));
        }
    } else {
        for (long k = lane; k < length; k += LANES) {
            float element_y = is_gradient() ? float(y[offsets[1] + k * slices.along[1]]) : 0.0f;
            own = SliceMerge::merge(own, state_of(float(x[offsets[0] + k * slices.along[0]]), element_y));
        }
    }
    SliceState state = shared_state(own, scratch, thread_index);
    if (FITS) {
        for (uint i = 0; i < HELD; i += 1) {
            long k = long(lane) + i * LANES;
            if (k >= length) break;
            out[offsets[2] + k * slices.along[2]] = T(result_of(held_x[i], held_y[i], state));
        }
    } else {
        for (long k = lane; k < length; k += LANES) {
            float element_y = is_gradient() ? float(y[offsets[1] + k * slices.along[1]]) : 0.0f;
            out[offsets[2] + k * slices.along[2]] =
                T(result_of(float(x[offsets[0] + k * slices.along[0]]), element_y, state));
        }
    }
}

// x, y    [[buffer(0, 1)]]  y is x but for gradients
// out     [[buffer(2)]]
// scratch [[threadgroup(0)]]  a state for each thread
// grid: threadgroups [slices / COLUMNS] of COLUMNS · LANES threads

#define SOFTMAX_KERNEL(T)                                                                                 \
    kernel void softmax_##T(                                                                              \
        device const T *x [[buffer(0)]], device const T *y [[buffer(1)]], device T *out [[buffer(2)]],    \
        constant Slices<3> &slices [[buffer(3)]], threadgroup SliceState *scratch [[threadgroup(0)]],     \
        uint thread_index [[thread_index_in_threadgroup]], uint group [[threadgroup_position_in_grid]]) { \
        softmax_slice(x, y, out, slices, scratch, thread_index, group);                                   \
    }

SOFTMAX_KERNEL(float)
SOFTMAX_KERNEL(half)
SOFTMAX_KERNEL(bfloat)
