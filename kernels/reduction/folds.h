// The state of a reduction with one result: how an element joins it, how two become one, and what the result is.
//
// Floats are computed in float32, integers and bools in 64 bits. One operation is left in a pipeline, so there is no
// branch at run time.

#ifndef ORCHARD_REDUCTION_FOLDS_H
#define ORCHARD_REDUCTION_FOLDS_H

#include "common/extended.h"
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

// What fields hold, where there are several; everything else is in the first.
//   prod         a `Product`: value, lost, exponent
//   mean         Σ x · 2^(-90 · level), level: 1 where sums of such numbers may overflow, else 0
//   norm2        `Squares`: sum, level
//   normP        Σ (|x| · 2^-exponent)^p, exponent, p
//   var, std     the mean, `Squares` of x - mean (its sum), the number of elements, what rounding took from the mean,
//                the level of the squares
//   logsumexp    the largest, Σ exp(x - largest)
template <typename Number> struct FoldState {
    Number first;
    float second;
    float third;
    float fourth;
    float fifth;
};

template <typename Number> struct Fold;

template <> struct Fold<float> {
    using State = FoldState<float>;

    static State identity() {
        switch (operation) {
        case REDUCTION_PROD: return state_of(product_of(1.0f));
        case REDUCTION_NORM2: return state_of(Squares{0.0f, -1});
        case REDUCTION_ALL: return {1.0f, 0.0f, 0.0f, 0.0f, 0.0f};
        case REDUCTION_AMAX:
        case REDUCTION_LOGSUMEXP: return {-INFINITY, 0.0f, 0.0f, 0.0f, 0.0f};
        case REDUCTION_AMIN:
        case REDUCTION_NORM_NEG_INF: return {INFINITY, 0.0f, 0.0f, 0.0f, 0.0f};
        default: return {0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
        }
    }

    // The state of one element.
    static State of_element(float x, float p) {
        switch (operation) {
        case REDUCTION_ALL:
        case REDUCTION_ANY:
        case REDUCTION_NORM0: return {x != 0.0f ? 1.0f : 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
        case REDUCTION_NORM1:
        case REDUCTION_NORM_INF:
        case REDUCTION_NORM_NEG_INF: return {abs(x), 0.0f, 0.0f, 0.0f, 0.0f};
        case REDUCTION_PROD: return state_of(product_of(x));
        case REDUCTION_MEAN: {
            bool is_large = abs(x) >= 0x1p90f;
            return {is_large ? x * 0x1p-90f : x, is_large ? 1.0f : 0.0f, 0.0f, 0.0f, 0.0f};
        }
        case REDUCTION_NORM2: return state_of(square_of(x));
        case REDUCTION_NORM_P: return power_of(abs(x), p);
        case REDUCTION_VAR:
        case REDUCTION_STD: return {x, 0.0f, 1.0f, 0.0f, -1.0f};
        case REDUCTION_LOGSUMEXP: return {x, precise::exp(x - shift_of(x)), 0.0f, 0.0f, 0.0f};
        default: return {x, 0.0f, 0.0f, 0.0f, 0.0f};
        }
    }

    static State merge(State a, State b) {
        switch (operation) {
        case REDUCTION_PROD: return state_of(multiplied(product_in(a), product_in(b)));
        case REDUCTION_MEAN: {
            float level = max(a.second, b.second);
            return {scaled_to(level, a) + scaled_to(level, b), level, 0.0f, 0.0f, 0.0f};
        }
        case REDUCTION_NORM2: return state_of(added({a.first, int(a.second)}, {b.first, int(b.second)}));
        case REDUCTION_NORM_P: return merged_powers(a, b);
        case REDUCTION_AMAX:
        case REDUCTION_ANY:
        case REDUCTION_NORM_INF: return {larger(a.first, b.first), 0.0f, 0.0f, 0.0f, 0.0f};
        case REDUCTION_AMIN:
        case REDUCTION_ALL:
        case REDUCTION_NORM_NEG_INF: return {smaller(a.first, b.first), 0.0f, 0.0f, 0.0f, 0.0f};
        case REDUCTION_VAR:
        case REDUCTION_STD: return merged_moments(a, b);
        case REDUCTION_LOGSUMEXP: {
            float largest = larger(a.first, b.first);
            float sum = rescaled(a.second, a.first, largest) + rescaled(b.second, b.first, largest);
            return {largest, sum, 0.0f, 0.0f, 0.0f};
        }
        default: return {a.first + b.first, 0.0f, 0.0f, 0.0f, 0.0f};
        }
    }

    // Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979. Means
    // are carried with what their rounding lost (TwoSum): far from zero that is all of a small deviation.
    static State merged_moments(State a, State b) {
        if (b.third == 0.0f) return a;
        if (a.third == 0.0f) return b;
        float count = a.third + b.third;
        // Half of the difference: all of it may overflow.
        float half_difference = (0.5f * b.first - 0.5f * a.first) + 0.5f * (b.fourth - a.fourth);
        float share = b.third / count;
        float step = a.fourth + half_difference * (2.0f * share);
        float mean = a.first + step;
        float lost = two_sum_error(a.first, step, mean);
        Squares apart = square_of(half_difference);
        apart.sum *= 4.0f * (a.third * share);
        Squares squares = added(added(squares_in(a), squares_in(b)), apart);
        return {mean, squares.sum, count, isfinite(mean) ? lost : 0.0f, float(squares.level)};
    }

    static State state_of(Product x) { return {x.value, x.lost, float(x.exponent), 0.0f, 0.0f}; }
    static Product product_in(State x) { return {x.first, x.second, int(x.third)}; }
    static State state_of(Squares x) { return {x.sum, float(x.level), 0.0f, 0.0f, 0.0f}; }
    static Squares squares_in(State moments) { return {moments.second, int(moments.fifth)}; }

    static float scaled_to(float level, State x) { return x.second < level ? x.first * 0x1p-90f : x.first; }

    // x^p of x ≥ 0, divided by a power of two that leaves something about 1.
    static State power_of(float x, float p) {
        int exponent = 0;
        if (x == 0.0f || !isfinite(x)) return {precise::pow(x, p), 0.0f, p, 0.0f, 0.0f};
        float fraction = frexp(x, exponent);
        bool is_small = fraction < 0.70710678f;
        float power = precise::pow(is_small ? 2.0f * fraction : fraction, p);
        return {power, float(is_small ? exponent - 1 : exponent), p, 0.0f, 0.0f};
    }

    static float power_at(float exponent, State x) {
        if (x.second == exponent || x.first == 0.0f || isinf(x.first)) return x.first;
        return x.first * precise::exp2((x.second - exponent) * x.third);
    }

    static State merged_powers(State a, State b) {
        if (a.first == 0.0f) return b;
        if (b.first == 0.0f) return a;
        float exponent = a.second * a.third >= b.second * b.third ? a.second : b.second;
        return {power_at(exponent, a) + power_at(exponent, b), exponent, a.third, 0.0f, 0.0f};
    }

    static State shuffled(State state, ushort mask) {
        state.first = shuffled_xor(state.first, mask);
        if (fields() > 1) state.second = shuffled_xor(state.second, mask);
        if (fields() > 2) {
            state.third = shuffled_xor(state.third, mask);
            state.fourth = shuffled_xor(state.fourth, mask);
            state.fifth = shuffled_xor(state.fifth, mask);
        }
        return state;
    }

    static int fields() {
        switch (operation) {
        case REDUCTION_VAR:
        case REDUCTION_STD:
        case REDUCTION_PROD:
        case REDUCTION_NORM_P: return 5;
        case REDUCTION_MEAN:
        case REDUCTION_NORM2:
        case REDUCTION_LOGSUMEXP: return 2;
        default: return 1;
        }
    }

    static float result(State state, constant ReductionParameters &p) {
        switch (operation) {
        case REDUCTION_PROD: return rounded(product_in(state));
        case REDUCTION_MEAN: return state.first / float(p.reduced.count) * (state.second > 0.0f ? 0x1p90f : 1.0f);
        case REDUCTION_NORM2: return root({state.first, int(state.second)});
        case REDUCTION_NORM_P: return ldexp(precise::pow(state.first, 1.0f / p.parameter), int(state.second));
        case REDUCTION_VAR: return rounded(variance(state, p));
        case REDUCTION_STD: return root(variance(state, p));
        case REDUCTION_LOGSUMEXP: return precise::log(state.second) + shift_of(state.first);
        default: return state.first;
        }
    }

    static Squares variance(State state, constant ReductionParameters &p) {
        float freedom = max(float(p.reduced.count) - p.parameter, 0.0f);
        // An infinite element leaves an infinite mean: its own deviation is inf - inf.
        if (p.reduced.count == 0 || !isfinite(state.first)) return {NAN, 0};
        return {state.second / freedom, int(state.fifth)};
    }
};

template <> struct Fold<long> {
    using State = FoldState<long>;

    static State identity() {
        switch (operation) {
        case REDUCTION_PROD:
        case REDUCTION_ALL: return {1, 0.0f, 0.0f, 0.0f, 0.0f};
        case REDUCTION_AMAX: return {-0x7fffffffffffffff - 1, 0.0f, 0.0f, 0.0f, 0.0f};
        case REDUCTION_AMIN: return {0x7fffffffffffffff, 0.0f, 0.0f, 0.0f, 0.0f};
        default: return {0, 0.0f, 0.0f, 0.0f, 0.0f};
        }
    }

    static State of_element(long x, float) {
        bool is_truth = operation == REDUCTION_ALL || operation == REDUCTION_ANY;
        return {is_truth ? long(x != 0) : x, 0.0f, 0.0f, 0.0f, 0.0f};
    }

    // Sums and products wrap around.
    static State merge(State a, State b) {
        switch (operation) {
        case REDUCTION_PROD: return {long(ulong(a.first) * ulong(b.first)), 0.0f, 0.0f, 0.0f, 0.0f};
        case REDUCTION_AMAX:
        case REDUCTION_ANY: return {larger(a.first, b.first), 0.0f, 0.0f, 0.0f, 0.0f};
        case REDUCTION_AMIN:
        case REDUCTION_ALL: return {smaller(a.first, b.first), 0.0f, 0.0f, 0.0f, 0.0f};
        default: return {long(ulong(a.first) + ulong(b.first)), 0.0f, 0.0f, 0.0f, 0.0f};
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
