// Along every slice: softmax    y[k] = exp(x[k] - m) / Σ exp(x - m), where m is the largest element
//                    logSoftmax y[k] = x[k] - m - log Σ exp(x - m)
// and their gradients from g = ∂L/∂y:
//                    y[k] (g[k] - Σ g y)     and     g[k] - exp(y[k]) Σ g
//
// `LANES` threads share a slice: a SIMD-group or a threadgroup if its elements are adjacent (rows), few threads if the
// elements of adjacent slices are adjacent (columns). Each thread keeps up to COUNT elements in registers, so that
// memory is read once; longer slices (`FITS` = 0) are read a second time for the result. For rows that fit, the largest
// element is found first, and each exponential is computed once. Otherwise the largest element and the sum are computed
// in one pass (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018), one block of elements at a
// time. Everything is computed in float32. A slice whose largest element is not finite gives NaN.

#include <metal_stdlib>
using namespace metal;

#include "common/slices.h"
#include "generated/softmax.h"
#include "reduction/groups.h"
#include "reduction/online.h"
#include "common/teams.h"

#define HELD 32
constant uint FITS [[function_constant(3)]];
constant uint COUNT [[function_constant(4)]];     // elements per thread
constant uint ADJACENT [[function_constant(5)]];  // whether a slice's elements are adjacent in all operands

// largest: the largest element; sum: Σ exp(x - largest). Gradients use only the sum.
struct SliceState {
    float largest;
    float sum;
};

// For each operation: the term that x and y add to the sum, the `factor` computed from the sum, and an element's result
// from that factor and the slice's state. `is_kept` says that x already is exp(x - largest). An operation that is
// missing here does not compile.
template <Softmax name> struct Formula;
#define FORMULA(name, gradient, summand, of_sum, result)                                                   \
    template <> struct Formula<name> {                                                                     \
        static bool is_gradient() { return gradient; }                                                     \
        static float term(float x, float y, float shift) { return summand; }                               \
        static float factor_of(float sum) { return of_sum; }                                               \
        static float of(float x, float y, SliceState state, float factor, bool is_kept) { return result; } \
    };

FORMULA(
    SOFTMAX_SOFTMAX,
    false,
    precise::exp(x - shift),
    1.0f / sum,
    (is_kept ? x : precise::exp(x - state.largest)) * factor)
FORMULA(SOFTMAX_LOG_SOFTMAX, false, precise::exp(x - shift), precise::log(sum), (x - state.largest) - factor)
FORMULA(SOFTMAX_SOFTMAX_GRADIENT, true, (x * y), sum, y *(x - state.sum))
FORMULA(SOFTMAX_LOG_SOFTMAX_GRADIENT, true, x, sum, x - precise::exp(y) * state.sum)

inline bool is_gradient() {
    switch (operation) { SOFTMAX_NAMES(ORCHARD_CASE, Formula, is_gradient()) }
    return false;
}
inline float summand(float x, float y, float shift) {
    switch (operation) { SOFTMAX_NAMES(ORCHARD_CASE, Formula, term(x, y, shift)) }
    return NAN;
}
inline float factor_of(float sum) {
    switch (operation) { SOFTMAX_NAMES(ORCHARD_CASE, Formula, factor_of(sum)) }
    return NAN;
}
inline float result_of(float x, float y, SliceState state, float factor, bool is_kept) {
    switch (operation) { SOFTMAX_NAMES(ORCHARD_CASE, Formula, of(x, y, state, factor, is_kept)) }
    return NAN;
}

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

struct Larger {
    static float of(float a, float b) { return larger(a, b); }
};

// A slice in each operand, and the thread's lane. For gradients, x is g and y is the forward result; otherwise y is x.
template <typename T> struct Slice {
    device const T *x;
    device const T *y;
    device T *out;
    long length;
    uint lane;
};

// A thread's registers for a block of a slice. Beyond the end they contain values that add nothing to a sum.
struct Elements {
    float x[HELD];
    float y[HELD];
};

template <typename T>
inline void load_block(thread Elements &held, Slice<T> slice, constant Slices<3> &slices, long begin) {
    for (uint i = 0; i < COUNT; i += 1) {
        const long k = begin + slice.lane + i * LANES;
        held.x[i] = is_gradient() ? 0.0f : -INFINITY;
        held.y[i] = 0.0f;
        if (k >= slice.length) continue;
        held.x[i] = float(slice.x[ADJACENT ? k : k * slices.along[0]]);
        if (is_gradient()) held.y[i] = float(slice.y[ADJACENT ? k : k * slices.along[1]]);
    }
}

inline float largest_of(thread const Elements &held) {
    float largest = -INFINITY;
    for (uint i = 0; i < COUNT; i += 1) {
        largest = larger(largest, held.x[i]);
    }
    return largest;
}

// Returns Σ exp(x - largest), or the sum for a gradient, over a thread's elements. With `keeps`, x is replaced by exp(x
// - largest).
inline float sum_of(thread Elements &held, float largest, bool keeps) {
    const float shift = shift_of(largest);
    float sum = 0.0f;
    for (uint i = 0; i < COUNT; i += 1) {
        const float term = summand(held.x[i], held.y[i], shift);
        if (keeps) held.x[i] = term;
        sum += term;
    }
    return sum;
}

// Returns the state of a thread's part of a slice, computed block by block. The last block stays in registers.
template <typename T>
inline SliceState thread_state(thread Elements &held, Slice<T> slice, constant Slices<3> &slices) {
    SliceState state = {-INFINITY, 0.0f};
    for (long begin = 0; begin < (FITS ? 1 : slice.length); begin += LANES * COUNT) {
        load_block(held, slice, slices, begin);
        const float largest = is_gradient() ? 0.0f : largest_of(held);
        state = SliceMerge::merge(state, {largest, sum_of(held, largest, false)});
    }
    return state;
}

// Returns the state of a slice that a team shares; all threads of the team get it.
template <typename T>
inline SliceState team_state(
    thread Elements &held, Slice<T> slice, constant Slices<3> &slices, bool keeps, thread Exchange<float> &exchange) {
    if (!FITS) {
        const SliceState state = thread_state(held, slice, slices);
        if (is_gradient()) return {0.0f, team_combined<Sum>(state.sum, exchange)};
        const float largest = team_combined<Larger>(state.largest, exchange);
        return {largest, team_combined<Sum>(rescaled(state.sum, state.largest, largest), exchange)};
    }
    load_block(held, slice, slices, 0);
    const float largest = is_gradient() ? 0.0f : team_combined<Larger>(largest_of(held), exchange);
    return {largest, team_combined<Sum>(sum_of(held, largest, keeps), exchange)};
}

// Returns the state of a column, in all threads that share it.
inline SliceState column_state(SliceState part, threadgroup SliceState *scratch, uint thread_index) {
    SliceState state = combined<SliceMerge>(part, scratch, thread_index);
    if (LANES > 1) {
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
    threadgroup float *parts,
    uint thread_index,
    uint group) {
    const bool is_row = LANES >= 32;
    const ulong number = ulong(group) * COLUMNS + (is_row ? thread_index / LANES : thread_index % COLUMNS);
    const bool is_there = number < ulong(slices.nest.count);
    long offsets[3];
    slice_offsets(slices, number, offsets);
    const Slice<T> slice = {
        x + offsets[0], y + offsets[1], out + offsets[2], is_there ? slices.length : 0,
        is_row ? thread_index % LANES : thread_index / COLUMNS};
    const bool keeps = is_row && FITS && operation == SOFTMAX_SOFTMAX;
    Elements held;
    SliceState state;
    if (is_row) {
        Exchange<float> exchange = {parts, thread_index, 0};
        state = team_state(held, slice, slices, keeps, exchange);
    } else {
        state = column_state(thread_state(held, slice, slices), scratch, thread_index);
    }
    const bool is_nothing = !is_gradient() && isinf(state.largest);
    const float factor = factor_of(state.sum);
    for (long begin = 0; begin < slice.length; begin += LANES * COUNT) {
        if (!FITS) load_block(held, slice, slices, begin);
        for (uint i = 0; i < COUNT; i += 1) {
            const long k = begin + slice.lane + i * LANES;
            if (k >= slice.length) break;
            const float result = is_nothing ? NAN : result_of(held.x[i], held.y[i], state, factor, keeps);
            slice.out[ADJACENT ? k : k * slices.along[2]] = T(result);
        }
    }
}

// x, y    [[buffer(0, 1)]]  y is x except for gradients
// out     [[buffer(2)]]
// scratch [[threadgroup(0)]]  one state per thread, for columns
// grid: threadgroups [slices / COLUMNS] of COLUMNS · LANES threads

#define SOFTMAX_KERNEL(T)                                                                                 \
    kernel void softmax_##T(                                                                              \
        device const T *x [[buffer(0)]], device const T *y [[buffer(1)]], device T *out [[buffer(2)]],    \
        constant Slices<3> &slices [[buffer(3)]], threadgroup SliceState *scratch [[threadgroup(0)]],     \
        uint thread_index [[thread_index_in_threadgroup]], uint group [[threadgroup_position_in_grid]]) { \
        threadgroup float parts[2 * SIMDGROUPS];                                                          \
        softmax_slice(x, y, out, slices, scratch, parts, thread_index, group);                            \
    }

SOFTMAX_KERNEL(float)
SOFTMAX_KERNEL(half)
SOFTMAX_KERNEL(bfloat)
