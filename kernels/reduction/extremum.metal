// values[k] = the largest (or smallest) of input[k, r] over every index r of the reduced axes, and indices[k] = its r,
// counted row-major: of equal elements the first, of NaNs too, which are beyond all numbers. The function constant
// `operation` says which.
//
// Kernels as in fold.metal: from elements or from states, to results or to states. A state is a value and an index.

#include <metal_stdlib>
using namespace metal;

#include "reduction/folds.h"

template <typename Number> struct ExtremumState {
    Number value;
    long index;  // -1: no element yet
};

template <typename Number> struct Extremum {
    using State = ExtremumState<Number>;

    static bool is_before(State a, State b) {
        bool a_nan = a.value != a.value;
        bool b_nan = b.value != b.value;
        if (a_nan != b_nan) return a_nan;
        if (a.value == b.value || a_nan) return a.index < b.index;
        return operation == REDUCTION_MAX ? a.value > b.value : a.value < b.value;
    }

    static State merge(State a, State b) {
        if (b.index < 0) return a;
        return a.index < 0 || is_before(b, a) ? b : a;
    }

    static State shuffled(State state, ushort mask) {
        state.value = shuffled_xor(state.value, mask);
        state.index = shuffled_xor(state.index, mask);
        return state;
    }
};

template <typename In>
inline ExtremumState<typename NumberOf<In>::type> extreme_element(
    device const In *input,
    constant ReductionParameters &p,
    Share share,
    threadgroup ExtremumState<typename NumberOf<In>::type> *scratch,
    uint thread_index) {
    using Number = typename NumberOf<In>::type;
    ExtremumState<Number> state = {Number(0), -1};
    long base = loop_offset(p.kept, 0, ulong(share.result));
    for (long index = share.begin + share.lane; index < share.end; index += LANES) {
        long offset = base + loop_offset(p.reduced, 0, ulong(index));
        ExtremumState<Number> other = {Number(input[offset]), index};
        state = Extremum<Number>::merge(state, other);
    }
    return combined<Extremum<Number>>(state, scratch, thread_index);
}

template <typename Number>
inline ExtremumState<Number> extreme_state(
    device const Number *values,
    device const long *indices,
    constant ReductionParameters &p,
    Share share,
    threadgroup ExtremumState<Number> *scratch,
    uint thread_index) {
    ExtremumState<Number> state = {Number(0), -1};
    for (long index = share.begin + share.lane; index < share.end; index += LANES) {
        long offset = share.result * p.count + index;
        ExtremumState<Number> other = {values[offset], indices[offset]};
        state = Extremum<Number>::merge(state, other);
    }
    return combined<Extremum<Number>>(state, scratch, thread_index);
}

template <typename Number, typename Out>
inline void store_extremum(
    ExtremumState<Number> state, device Out *values, device long *indices, Share share, long results, long offset) {
    if (share.lane != 0 || share.result >= results) return;
    values[offset] = Out(state.value);
    indices[offset] = state.index;
}

// input, values, indices [[buffer(0 to 2)]]; from states: values and indices of states, values, indices [[buffer(0 to
// 3)]]; then p. scratch and grid as in fold.metal.

#define PLACEMENT(Number)                                                                                             \
    threadgroup ExtremumState<Number> *scratch [[threadgroup(0)]], uint thread_index [[thread_index_in_threadgroup]], \
        uint2 group [[threadgroup_position_in_grid]]

#define EXTREMUM(In, Number)                                                                                           \
    kernel void extremum_##In(                                                                                         \
        device const In *input [[buffer(0)]], device In *values [[buffer(1)]], device long *indices [[buffer(2)]],     \
        constant ReductionParameters &p [[buffer(3)]], PLACEMENT(Number)) {                                            \
        Share share = share_of(p, thread_index, group);                                                                \
        ExtremumState<Number> state = extreme_element(input, p, share, scratch, thread_index);                         \
        long offset = loop_offset(p.kept, 1, ulong(share.result));                                                     \
        store_extremum(state, values, indices, share, p.kept.count, offset);                                           \
    }                                                                                                                  \
    kernel void extremum_partial_##In(                                                                                 \
        device const In *input [[buffer(0)]], device Number *values [[buffer(1)]], device long *indices [[buffer(2)]], \
        constant ReductionParameters &p [[buffer(3)]], PLACEMENT(Number)) {                                            \
        Share share = share_of(p, thread_index, group);                                                                \
        ExtremumState<Number> state = extreme_element(input, p, share, scratch, thread_index);                         \
        store_extremum(state, values, indices, share, p.kept.count, share.result * p.chunks + group.y);                \
    }                                                                                                                  \
    kernel void extremum_merge_##In(                                                                                   \
        device const Number *from_values [[buffer(0)]], device const long *from_indices [[buffer(1)]],                 \
        device In *values [[buffer(2)]], device long *indices [[buffer(3)]],                                           \
        constant ReductionParameters &p [[buffer(4)]], PLACEMENT(Number)) {                                            \
        Share share = share_of(p, thread_index, group);                                                                \
        ExtremumState<Number> state = extreme_state(from_values, from_indices, p, share, scratch, thread_index);       \
        long offset = loop_offset(p.kept, 1, ulong(share.result));                                                     \
        store_extremum(state, values, indices, share, p.kept.count, offset);                                           \
    }

#define EXTREMUM_PARTIAL(Number)                                                                                 \
    kernel void extremum_merge_partial_##Number(                                                                 \
        device const Number *from_values [[buffer(0)]], device const long *from_indices [[buffer(1)]],           \
        device Number *values [[buffer(2)]], device long *indices [[buffer(3)]],                                 \
        constant ReductionParameters &p [[buffer(4)]], PLACEMENT(Number)) {                                      \
        Share share = share_of(p, thread_index, group);                                                          \
        ExtremumState<Number> state = extreme_state(from_values, from_indices, p, share, scratch, thread_index); \
        store_extremum(state, values, indices, share, p.kept.count, share.result * p.chunks + group.y);          \
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
