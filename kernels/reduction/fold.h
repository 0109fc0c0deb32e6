// The bodies of the kernels of fold.metal.

#ifndef ORCHARD_REDUCTION_FOLD_H
#define ORCHARD_REDUCTION_FOLD_H

#include "reduction/folds.h"

template <typename In>
inline FoldState<typename NumberOf<In>::type> fold_elements(
    device const In *input,
    constant ReductionParameters &p,
    Share share,
    threadgroup FoldState<typename NumberOf<In>::type> *scratch,
    uint thread_index) {
    using Number = typename NumberOf<In>::type;
    using Merge = Fold<Number>;
    FoldState<Number> state = Merge::identity();
    device const In *from = input + loop_offset(p.kept, 0, ulong(share.result));
    constexpr uint ahead = elements_ahead<In>();
    long index = share.begin + share.lane;
    for (; index + long(LANES * (ahead - 1)) < share.end; index += LANES * ahead) {
        In elements[ahead];
        for (uint i = 0; i < ahead; i += 1) {
            elements[i] = from[loop_offset(p.reduced, 0, ulong(index) + LANES * i)];
        }
        for (uint i = 0; i < ahead; i += 1) {
            state = Merge::merge(state, Merge::of_element(Number(elements[i]), p.parameter));
        }
    }
    for (; index < share.end; index += LANES) {
        const In element = from[loop_offset(p.reduced, 0, ulong(index))];
        state = Merge::merge(state, Merge::of_element(Number(element), p.parameter));
    }
    return combined<Merge>(state, scratch, thread_index);
}

template <typename Number>
inline FoldState<Number> fold_states(
    device const Number *states,
    constant ReductionParameters &p,
    Share share,
    threadgroup FoldState<Number> *scratch,
    uint thread_index) {
    using Merge = Fold<Number>;
    FoldState<Number> state = Merge::identity();
    long plane = p.kept.count * p.count;
    for (long index = share.begin + share.lane; index < share.end; index += LANES) {
        device const Number *at = states + share.result * p.count + index;
        FoldState<Number> other = Merge::identity();
        other.first = at[0];
        if (Merge::fields() > 1) other.second = float(at[plane]);
        if (Merge::fields() > 2) {
            other.third = float(at[2 * plane]);
            other.fourth = float(at[3 * plane]);
            other.fifth = float(at[4 * plane]);
        }
        state = Merge::merge(state, other);
    }
    return combined<Merge>(state, scratch, thread_index);
}

template <typename Number>
inline void store_state(
    FoldState<Number> state, device Number *states, constant ReductionParameters &p, Share share, uint chunk) {
    if (share.lane != 0 || share.result >= p.kept.count) return;
    long plane = p.kept.count * p.chunks;
    device Number *at = states + share.result * p.chunks + chunk;
    at[0] = state.first;
    if (Fold<Number>::fields() > 1) at[plane] = Number(state.second);
    if (Fold<Number>::fields() > 2) {
        at[2 * plane] = Number(state.third);
        at[3 * plane] = Number(state.fourth);
        at[4 * plane] = Number(state.fifth);
    }
}

template <typename Number, typename Out>
inline void store_result(FoldState<Number> state, device Out *output, constant ReductionParameters &p, Share share) {
    if (share.lane != 0 || share.result >= p.kept.count) return;
    output[loop_offset(p.kept, 1, ulong(share.result))] = Out(Fold<Number>::result(state, p));
}

#endif
