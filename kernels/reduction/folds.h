// The state of a reduction with one result: how an element joins it, how two become one, and what the result is.
//
// Floats are computed in float32, integers and bools in 64 bits. One operation is left in a pipeline, so there is no
// branch at run time.

#ifndef ORCHARD_REDUCTION_FOLDS_H
#define ORCHARD_REDUCTION_FOLDS_H

#include "generated/reduction.h"
#include "reduction/groups.h"
#include "reduction/online.h"

template <typename T> struct NumberOf {
    using type = long;
};
template <> struct NumberOf<float> {
    using type = float;
};
template <> struct NumberOf<half> {
    using type = float;
};
template <> struct NumberOf<bfloat> {
    using type = float;
};

// first: the sum, product, largest, …, or the mean of var and the largest of logsumexp. second: Σ (x - mean)², or Σ
// exp(x - largest). third: the number of elements, for var. fourth: what rounding took from the mean.
template <typename Number> struct FoldState {
    Number first;
    float second;
    float third;
    float fourth;
};

template <typename Number> struct Fold;

template <> struct Fold<float> {
    using State = FoldState<float>;

    static State identity() {
        switch (operation) {
        case REDUCTION_PROD:
        case REDUCTION_ALL: return {1.0f, 0.0f, 0.0f, 0.0f};
        case REDUCTION_AMAX:
        case REDUCTION_LOGSUMEXP: return {-INFINITY, 0.0f, 0.0f, 0.0f};
        case REDUCTION_AMIN:
        case REDUCTION_NORM_NEG_INF: return {INFINITY, 0.0f, 0.0f, 0.0f};
        default: return {0.0f, 0.0f, 0.0f, 0.0f};
        }
    }

    // The state of one element.
    static State of_element(float x, float p) {
        switch (operation) {
        case REDUCTION_ALL:
        case REDUCTION_ANY:
        case REDUCTION_NORM0: return {x != 0.0f ? 1.0f : 0.0f, 0.0f, 0.0f, 0.0f};
        case REDUCTION_NORM1:
        case REDUCTION_NORM_INF:
        case REDUCTION_NORM_NEG_INF: return {abs(x), 0.0f, 0.0f, 0.0f};
        case REDUCTION_NORM2: return {x * x, 0.0f, 0.0f, 0.0f};
        case REDUCTION_NORM_P: return {precise::pow(abs(x), p), 0.0f, 0.0f, 0.0f};
        case REDUCTION_VAR:
        case REDUCTION_STD: return {x, 0.0f, 1.0f, 0.0f};
        case REDUCTION_LOGSUMEXP: return {x, precise::exp(x - shift_of(x)), 0.0f, 0.0f};
        default: return {x, 0.0f, 0.0f, 0.0f};
        }
    }

    static State merge(State a, State b) {
        switch (operation) {
        case REDUCTION_PROD: return {a.first * b.first, 0.0f, 0.0f, 0.0f};
        case REDUCTION_AMAX:
        case REDUCTION_ANY:
        case REDUCTION_NORM_INF: return {larger(a.first, b.first), 0.0f, 0.0f, 0.0f};
        case REDUCTION_AMIN:
        case REDUCTION_ALL:
        case REDUCTION_NORM_NEG_INF: return {smaller(a.first, b.first), 0.0f, 0.0f, 0.0f};
        case REDUCTION_VAR:
        case REDUCTION_STD: return merged_moments(a, b);
        case REDUCTION_LOGSUMEXP: {
            float largest = larger(a.first, b.first);
            return {largest, rescaled(a.second, a.first, largest) + rescaled(b.second, b.first, largest), 0.0f, 0.0f};
        }
        default: return {a.first + b.first, 0.0f, 0.0f, 0.0f};
        }
    }

    // Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979. Means
    // are carried with what their rounding lost (TwoSum): far from zero that is all of a small deviation.
    static State merged_moments(State a, State b) {
        if (b.third == 0.0f) return a;
        if (a.third == 0.0f) return b;
        float count = a.third + b.third;
        float difference = (b.first - a.first) + (b.fourth - a.fourth);
        float share = b.third / count;
        float step = a.fourth + difference * share;
        float mean = a.first + step;
        float lost = two_sum_error(a.first, step, mean);
        return {
            mean, a.second + b.second + difference * difference * (a.third * share), count,
            isfinite(mean) ? lost : 0.0f};
    }

    static State shuffled(State state, ushort mask) {
        state.first = shuffled_xor(state.first, mask);
        if (fields() > 1) state.second = shuffled_xor(state.second, mask);
        if (fields() > 2) {
            state.third = shuffled_xor(state.third, mask);
            state.fourth = shuffled_xor(state.fourth, mask);
        }
        return state;
    }

    static int fields() {
        bool is_moments = operation == REDUCTION_VAR || operation == REDUCTION_STD;
        return is_moments ? 4 : operation == REDUCTION_LOGSUMEXP ? 2 : 1;
    }

    static float result(State state, constant ReductionParameters &p) {
        switch (operation) {
        case REDUCTION_MEAN: return state.first / float(p.reduced.count);
        case REDUCTION_NORM2: return precise::sqrt(state.first);
        case REDUCTION_NORM_P: return precise::pow(state.first, 1.0f / p.parameter);
        case REDUCTION_VAR: return variance(state, p);
        case REDUCTION_STD: return precise::sqrt(variance(state, p));
        case REDUCTION_LOGSUMEXP: return precise::log(state.second) + shift_of(state.first);
        default: return state.first;
        }
    }

    static float variance(State state, constant ReductionParameters &p) {
        float freedom = float(p.reduced.count) - p.parameter;
        // An infinite element leaves an infinite mean: its own deviation is inf - inf.
        return p.reduced.count == 0 || !isfinite(state.first) ? NAN : state.second / (freedom > 0.0f ? freedom : 0.0f);
    }
};

template <> struct Fold<long> {
    using State = FoldState<long>;

    static State identity() {
        switch (operation) {
        case REDUCTION_PROD:
        case REDUCTION_ALL: return {1, 0.0f, 0.0f, 0.0f};
        case REDUCTION_AMAX: return {-0x7fffffffffffffff - 1, 0.0f, 0.0f, 0.0f};
        case REDUCTION_AMIN: return {0x7fffffffffffffff, 0.0f, 0.0f, 0.0f};
        default: return {0, 0.0f, 0.0f, 0.0f};
        }
    }

    static State of_element(long x, float) {
        bool is_truth = operation == REDUCTION_ALL || operation == REDUCTION_ANY;
        return {is_truth ? long(x != 0) : x, 0.0f, 0.0f, 0.0f};
    }

    // Sums and products wrap around.
    static State merge(State a, State b) {
        switch (operation) {
        case REDUCTION_PROD: return {long(ulong(a.first) * ulong(b.first)), 0.0f, 0.0f, 0.0f};
        case REDUCTION_AMAX:
        case REDUCTION_ANY: return {larger(a.first, b.first), 0.0f, 0.0f, 0.0f};
        case REDUCTION_AMIN:
        case REDUCTION_ALL: return {smaller(a.first, b.first), 0.0f, 0.0f, 0.0f};
        default: return {long(ulong(a.first) + ulong(b.first)), 0.0f, 0.0f, 0.0f};
        }
    }

    static State shuffled(State state, ushort mask) {
        state.first = shuffled_xor(state.first, mask);
        return state;
    }

    static int fields() { return 1; }
    static long result(State state, constant ReductionParameters &) { return state.first; }
};

#endif
