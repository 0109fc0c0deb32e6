// values[k] = the largest (or smallest) of input[k, r] over every index r of the reduced axes, and indices[k] = its r,
// counted row-major. Of equal elements, including NaNs, the first is taken; NaN counts as larger (or smaller) than all
// numbers. The function constant `operation` selects the largest or the smallest.
//
// There are four kernels, as in fold.metal: from elements or states, to results or states. A state is a value and an
// index.

#include <metal_stdlib>
using namespace metal;

#include "reduction/folds.h"

// The index is relative to a chunk's first element in 32 bits, or to a slice's first element in 64 bits.
template <typename Number, typename Index> struct ExtremumState {
    Number value;
    Index index;  // all bits set: no element yet
};

// Returns whether `a` comes before b: whether it is larger for max, smaller for min. NaN comes before all numbers.
template <Reduction name> struct Beyond;
template <> struct Beyond<REDUCTION_MAX> {
    template <typename Number> static bool of(Number a, Number b) { return b == b && !(a <= b); }
};
template <> struct Beyond<REDUCTION_MIN> {
    template <typename Number> static bool of(Number a, Number b) { return b == b && !(a >= b); }
};

template <typename Number, typename Index> struct Extremum {
    using State = ExtremumState<Number, Index>;

    static State none() { return {Number(0), ~Index(0)}; }
    static bool is_none(State x) { return x.index == ~Index(0); }

    // Returns false if they are equal, or both NaN.
    static bool is_beyond(Number a, Number b) {
        switch (operation) { REDUCTION_EXTREMA(ORCHARD_CASE, Beyond, of(a, b)) }
        return false;
    }

    static State merge(State a, State b) {
        if (is_none(b)) return a;
        if (is_none(a) || is_beyond(b.value, a.value)) return b;
        return is_beyond(a.value, b.value) || a.index < b.index ? a : b;
    }

    static State shuffled(State state, ushort mask) {
        state.value = shuffled_xor(state.value, mask);
        state.index = shuffled_xor(state.index, mask);
        return state;
    }
};

template <typename Number>
inline ExtremumState<Number, uint> better_of(ExtremumState<Number, uint> state, Number element, uint index) {
    const bool is_better = Extremum<Number, uint>::is_beyond(element, state.value);
    return {is_better ? element : state.value, is_better ? index : state.index};
}

// A thread's elements are processed in the order of their indices, so the first of equal ones is kept.
template <typename In>
inline ExtremumState<typename NumberOf<In>::type, uint> extreme_of_chunk(
    device const In *input, constant ReductionParameters &p, Share share) {
    using Number = typename NumberOf<In>::type;
    using Merge = Extremum<Number, uint>;
    if (share.begin + share.lane >= share.end) return Merge::none();
    device const In *from = input + loop_offset(p.kept, 0, ulong(share.result));
    const ulong begin = ulong(share.begin);
    const uint count = uint(share.end - share.begin);
    ExtremumState<Number, uint> state = {Number(from[loop_offset(p.reduced, 0, begin + share.lane)]), share.lane};
    constexpr uint ahead = elements_ahead<In>();
    uint index = share.lane + LANES;
    for (; index + LANES * (ahead - 1) < count; index += LANES * ahead) {
        In elements[ahead];
        for (uint i = 0; i < ahead; i += 1) {
            elements[i] = from[loop_offset(p.reduced, 0, begin + index + LANES * i)];
        }
        for (uint i = 0; i < ahead; i += 1) {
            state = better_of(state, Number(elements[i]), index + LANES * i);
        }
    }
    for (; index < count; index += LANES) {
        state = better_of(state, Number(from[loop_offset(p.reduced, 0, begin + index)]), index);
    }
    return state;
}

template <typename In>
inline ExtremumState<typename NumberOf<In>::type, long> extreme_element(
    device const In *input,
    constant ReductionParameters &p,
    Share share,
    threadgroup ExtremumState<typename NumberOf<In>::type, uint> *scratch,
    uint thread_index) {
    using Number = typename NumberOf<In>::type;
    const ExtremumState<Number, uint> state =
        combined<Extremum<Number, uint>>(extreme_of_chunk(input, p, share), scratch, thread_index);
    return {state.value, share.begin + long(state.index)};
}

template <typename Number>
inline ExtremumState<Number, long> extreme_state(
    device const Number *values,
    device const long *indices,
    constant ReductionParameters &p,
    Share share,
    threadgroup ExtremumState<Number, long> *scratch,
    uint thread_index) {
    using Merge = Extremum<Number, long>;
    ExtremumState<Number, long> state = Merge::none();
    for (long index = share.begin + share.lane; index < share.end; index += LANES) {
        long offset = share.result * p.count + index;
        const ExtremumState<Number, long> other = {values[offset], indices[offset]};
        state = Merge::merge(state, other);
    }
    return combined<Merge>(state, scratch, thread_index);
}

template <typename Number, typename Out>
inline void store_extremum(
    ExtremumState<Number, long> state,
    device Out *values,
    device long *indices,
    Share share,
    long results,
    long offset) {
    if (share.lane != 0 || share.result >= results) return;
    values[offset] = Out(state.value);
    indices[offset] = state.index;
}

// Buffers of a kernel that reads elements: input, values, indices, p. Buffers of a kernel that combines states: values
// and indices of the states, values, indices, p. The scratch memory and the grid are the same as in fold.metal.

#define PLACEMENT(Number, Index)                                          \
    threadgroup ExtremumState<Number, Index> *scratch [[threadgroup(0)]], \
        uint thread_index [[thread_index_in_threadgroup]], uint2 group [[threadgroup_position_in_grid]]

#define EXTREMUM(In, Number)                                                                                           \
    kernel void extremum_##In(                                                                                         \
        device const In *input [[buffer(0)]], device In *values [[buffer(1)]], device long *indices [[buffer(2)]],     \
        constant ReductionParameters &p [[buffer(3)]], PLACEMENT(Number, uint)) {                                      \
        Share share = share_of(p, thread_index, group);                                                                \
        ExtremumState<Number, long> state = extreme_element(input, p, share, scratch, thread_index);                   \
        long offset = loop_offset(p.kept, 1, ulong(share.result));                                                     \
        store_extremum(state, values, indices, share, p.kept.count, offset);                                           \
    }                                                                                                                  \
    kernel void extremum_partial_##In(                                                                                 \
        device const In *input [[buffer(0)]], device Number *values [[buffer(1)]], device long *indices [[buffer(2)]], \
        constant ReductionParameters &p [[buffer(3)]], PLACEMENT(Number, uint)) {                                      \
        Share share = share_of(p, thread_index, group);                                                                \
        ExtremumState<Number, long> state = extreme_element(input, p, share, scratch, thread_index);                   \
        store_extremum(state, values, indices, share, p.kept.count, share.result * p.chunks + group.y);                \
    }                                                                                                                  \
    kernel void extremum_merge_##In(                                                                                   \
        device const Number *from_values [[buffer(0)]], device const long *from_indices [[buffer(1)]],                 \
        device In *values [[buffer(2)]], device long *indices [[buffer(3)]],                                           \
        constant ReductionParameters &p [[buffer(4)]], PLACEMENT(Number, long)) {                                      \
        Share share = share_of(p, thread_index, group);                                                                \
        ExtremumState<Number, long> state = extreme_state(from_values, from_indices, p, share, scratch, thread_index); \
        long offset = loop_offset(p.kept, 1, ulong(share.result));                                                     \
        store_extremum(state, values, indices, share, p.kept.count, offset);                                           \
    }

#define EXTREMUM_PARTIAL(Number)                                                                                       \
    kernel void extremum_merge_partial_##Number(                                                                       \
        device const Number *from_values [[buffer(0)]], device const long *from_indices [[buffer(1)]],                 \
        device Number *values [[buffer(2)]], device long *indices [[buffer(3)]],                                       \
        constant ReductionParameters &p [[buffer(4)]], PLACEMENT(Number, long)) {                                      \
        Share share = share_of(p, thread_index, group);                                                                \
        ExtremumState<Number, long> state = extreme_state(from_values, from_indices, p, share, scratch, thread_index); \
        store_extremum(state, values, indices, share, p.kept.count, share.result * p.chunks + group.y);                \
    }

EXTREMUM(float, float)
EXTREMUM(half, float)
EXTREMUM(bfloat, float)
EXTREMUM(long, long)
EXTREMUM(int, long)
EXTREMUM(uint, long)
EXTREMUM(char, long)
EXTREMUM(uchar, long)
EXTREMUM(bool, long)
EXTREMUM_PARTIAL(float)
EXTREMUM_PARTIAL(long)
