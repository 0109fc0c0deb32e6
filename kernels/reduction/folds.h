// The state of a reduction: how an element is added to it, how two states are merged, and how the result is computed.
//
// Floats are computed in float32, integers and bools in 64 bits. A pipeline is specialized for one operation, so it
// does not branch at run time.

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

// The fields of reductions with several fields; all others use only the first field.
//   prod         an `ExtendedProduct`: value, lost, exponent
//   mean         Σ x · 2^(-90 · level), and the level: 1 if sums of such numbers may overflow, else 0
//   norm2        `Squares`: sum, level
//   normP        Σ (|x| · 2^-exponent)^p, exponent, p
//   var, std     the mean, `Squares` of x - mean (its sum), the number of elements, the mean's rounding error, the
//                level of the squares
//   logsumexp    the largest element, Σ exp(x - largest)
template <typename Number> struct FoldState {
    Number first;
    float second;
    float third;
    float fourth;
    float fifth;
};

using FloatState = FoldState<float>;

inline FloatState state_of(float x) { return {x, 0.0f, 0.0f, 0.0f, 0.0f}; }
inline FloatState state_of(ExtendedProduct x) { return {x.value, x.lost, float(x.exponent), 0.0f, 0.0f}; }
inline FloatState state_of(Squares x) { return {x.sum, float(x.level), 0.0f, 0.0f, 0.0f}; }
inline ExtendedProduct product_in(FloatState x) { return {x.first, x.second, int(x.third)}; }
inline Squares squares_in(FloatState moments) { return {moments.second, int(moments.fifth)}; }

// A reduction of floats: the states of no element and of one element, the merge of two states, the number of fields,
// and the result. A reduction that is missing here does not compile.
template <Reduction name> struct FloatFold;

// A reduction with one field: its initial value, the value of an element, and the merge of two fields a and b.
#define FLOAT_FOLD(name, start, element, merged)                                                         \
    template <> struct FloatFold<name> {                                                                 \
        static int fields() { return 1; }                                                                \
        static FloatState identity() { return state_of(start); }                                         \
        static FloatState of_element(float x, float) { return state_of(element); }                       \
        static float both(float a, float b) { return merged; }                                           \
        static FloatState merge(FloatState a, FloatState b) { return state_of(both(a.first, b.first)); } \
        static float result(FloatState state, constant ReductionParameters &) { return state.first; }    \
    };

FLOAT_FOLD(REDUCTION_SUM, 0.0f, x, a + b)
FLOAT_FOLD(REDUCTION_AMAX, -INFINITY, x, larger(a, b))
FLOAT_FOLD(REDUCTION_AMIN, INFINITY, x, smaller(a, b))
FLOAT_FOLD(REDUCTION_ALL, 1.0f, x != 0.0f ? 1.0f : 0.0f, smaller(a, b))
FLOAT_FOLD(REDUCTION_ANY, 0.0f, x != 0.0f ? 1.0f : 0.0f, larger(a, b))
FLOAT_FOLD(REDUCTION_NANSUM, 0.0f, isnan(x) ? 0.0f : x, a + b)
FLOAT_FOLD(REDUCTION_NANCOUNT, 0.0f, isnan(x) ? 0.0f : 1.0f, a + b)
FLOAT_FOLD(REDUCTION_NANMAX, NAN, x, isnan(b) || a >= b ? a : b)
FLOAT_FOLD(REDUCTION_NANMIN, NAN, x, isnan(b) || a <= b ? a : b)
FLOAT_FOLD(REDUCTION_NORM0, 0.0f, x != 0.0f ? 1.0f : 0.0f, a + b)
FLOAT_FOLD(REDUCTION_NORM1, 0.0f, abs(x), a + b)
FLOAT_FOLD(REDUCTION_NORM_INF, 0.0f, abs(x), larger(a, b))
FLOAT_FOLD(REDUCTION_NORM_NEG_INF, INFINITY, abs(x), smaller(a, b))

template <> struct FloatFold<REDUCTION_PROD> {
    static int fields() { return 5; }
    static FloatState identity() { return state_of(product_of(1.0f)); }
    static FloatState of_element(float x, float) { return state_of(product_of(x)); }
    static FloatState merge(FloatState a, FloatState b) { return state_of(multiplied(product_in(a), product_in(b))); }
    static float result(FloatState state, constant ReductionParameters &) { return rounded(product_in(state)); }
};

template <> struct FloatFold<REDUCTION_MEAN> {
    static int fields() { return 2; }
    static FloatState identity() { return state_of(0.0f); }

    static FloatState of_element(float x, float) {
        bool is_large = abs(x) >= TWO_TO_90;
        return {is_large ? x * TWO_TO_MINUS_90 : x, is_large ? 1.0f : 0.0f, 0.0f, 0.0f, 0.0f};
    }

    static FloatState merge(FloatState a, FloatState b) {
        float level = max(a.second, b.second);
        return {scaled_to(level, a) + scaled_to(level, b), level, 0.0f, 0.0f, 0.0f};
    }

    static float scaled_to(float level, FloatState x) { return x.second < level ? x.first * TWO_TO_MINUS_90 : x.first; }

    static float result(FloatState state, constant ReductionParameters &p) {
        return state.first / float(p.reduced.count) * (state.second > 0.0f ? TWO_TO_90 : 1.0f);
    }
};

template <> struct FloatFold<REDUCTION_NORM2> {
    static int fields() { return 2; }
    static FloatState identity() { return state_of(Squares{0.0f, -1}); }
    static FloatState of_element(float x, float) { return state_of(square_of(x)); }

    static FloatState merge(FloatState a, FloatState b) {
        return state_of(added({a.first, int(a.second)}, {b.first, int(b.second)}));
    }

    static float result(FloatState state, constant ReductionParameters &) {
        return root({state.first, int(state.second)});
    }
};

template <> struct FloatFold<REDUCTION_NORM_P> {
    static int fields() { return 5; }
    static FloatState identity() { return state_of(0.0f); }
    static FloatState of_element(float x, float p) { return power_of(abs(x), p); }

    // Returns x^p for x ≥ 0, scaled by a power of two so that it is near 1.
    static FloatState power_of(float x, float p) {
        int exponent = 0;
        if (x == 0.0f || !isfinite(x)) return {precise::pow(x, p), 0.0f, p, 0.0f, 0.0f};
        float fraction = frexp(x, exponent);
        bool is_small = fraction < 0.70710678f;
        float power = precise::pow(is_small ? 2.0f * fraction : fraction, p);
        return {power, float(is_small ? exponent - 1 : exponent), p, 0.0f, 0.0f};
    }

    static float power_at(float exponent, FloatState x) {
        if (x.second == exponent || x.first == 0.0f || isinf(x.first)) return x.first;
        return x.first * precise::exp2((x.second - exponent) * x.third);
    }

    static FloatState merge(FloatState a, FloatState b) {
        if (a.first == 0.0f) return b;
        if (b.first == 0.0f) return a;
        float exponent = a.second * a.third >= b.second * b.third ? a.second : b.second;
        return {power_at(exponent, a) + power_at(exponent, b), exponent, a.third, 0.0f, 0.0f};
    }

    static float result(FloatState state, constant ReductionParameters &p) {
        return ldexp(precise::pow(state.first, 1.0f / p.parameter), int(state.second));
    }
};

// Source: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
// Means are stored with their rounding errors (TwoSum): far from zero, the rounding error would exceed small
// deviations.
inline FloatState merged_moments(FloatState a, FloatState b) {
    if (b.third == 0.0f) return a;
    if (a.third == 0.0f) return b;
    float count = a.third + b.third;
    // Computes half of the difference, since the difference itself may overflow.
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

inline Squares variance(FloatState state, constant ReductionParameters &p) {
    float freedom = max(float(p.reduced.count) - p.parameter, 0.0f);
    // With an infinite element the mean is infinite, and that element's deviation is inf - inf.
    if (p.reduced.count == 0 || !isfinite(state.first)) return {NAN, 0};
    return {state.second / freedom, int(state.fifth)};
}

// A variance, or its square root.
#define MOMENTS_FOLD(name, of_variance)                                                       \
    template <> struct FloatFold<name> {                                                      \
        static int fields() { return 5; }                                                     \
        static FloatState identity() { return state_of(0.0f); }                               \
        static FloatState of_element(float x, float) { return {x, 0.0f, 1.0f, 0.0f, -1.0f}; } \
        static FloatState merge(FloatState a, FloatState b) { return merged_moments(a, b); }  \
        static float result(FloatState state, constant ReductionParameters &p) {              \
            return of_variance(variance(state, p));                                           \
        }                                                                                     \
    };

MOMENTS_FOLD(REDUCTION_VAR, rounded)
MOMENTS_FOLD(REDUCTION_STD, root)

template <> struct FloatFold<REDUCTION_LOGSUMEXP> {
    static int fields() { return 2; }
    static FloatState identity() { return state_of(-INFINITY); }

    static FloatState of_element(float x, float) { return {x, precise::exp(x - shift_of(x)), 0.0f, 0.0f, 0.0f}; }

    static FloatState merge(FloatState a, FloatState b) {
        float largest = larger(a.first, b.first);
        float sum = rescaled(a.second, a.first, largest) + rescaled(b.second, b.first, largest);
        return {largest, sum, 0.0f, 0.0f, 0.0f};
    }

    static float result(FloatState state, constant ReductionParameters &) {
        return precise::log(state.second) + shift_of(state.first);
    }
};

// A reduction of integers. Sums and products wrap around.
template <Reduction name> struct IntegerFold;
#define INTEGER_FOLD(name, start, element, merged)           \
    template <> struct IntegerFold<name> {                   \
        static long identity() { return start; }             \
        static long of_element(long x) { return element; }   \
        static long merge(long a, long b) { return merged; } \
    };

INTEGER_FOLD(REDUCTION_SUM, 0, x, long(ulong(a) + ulong(b)))
INTEGER_FOLD(REDUCTION_PROD, 1, x, long(ulong(a) * ulong(b)))
INTEGER_FOLD(REDUCTION_AMAX, -0x7fffffffffffffff - 1, x, larger(a, b))
INTEGER_FOLD(REDUCTION_AMIN, 0x7fffffffffffffff, x, smaller(a, b))
INTEGER_FOLD(REDUCTION_ALL, 1, x != 0, smaller(a, b))
INTEGER_FOLD(REDUCTION_ANY, 0, x != 0, larger(a, b))

// The reduction that the function constant `operation` selects.
template <typename Number> struct Fold;

template <> struct Fold<float> {
    static int fields() {
        switch (operation) { REDUCTION_FOLDS(ORCHARD_CASE, FloatFold, fields()) }
        return 0;
    }
    static FloatState identity() {
        switch (operation) { REDUCTION_FOLDS(ORCHARD_CASE, FloatFold, identity()) }
        return state_of(NAN);
    }
    static FloatState of_element(float x, float p) {
        switch (operation) { REDUCTION_FOLDS(ORCHARD_CASE, FloatFold, of_element(x, p)) }
        return state_of(NAN);
    }
    static FloatState merge(FloatState a, FloatState b) {
        switch (operation) { REDUCTION_FOLDS(ORCHARD_CASE, FloatFold, merge(a, b)) }
        return state_of(NAN);
    }
    static float result(FloatState state, constant ReductionParameters &p) {
        switch (operation) { REDUCTION_FOLDS(ORCHARD_CASE, FloatFold, result(state, p)) }
        return NAN;
    }

    static FloatState shuffled(FloatState state, ushort mask) {
        state.first = shuffled_xor(state.first, mask);
        if (fields() > 1) state.second = shuffled_xor(state.second, mask);
        if (fields() > 2) {
            state.third = shuffled_xor(state.third, mask);
            state.fourth = shuffled_xor(state.fourth, mask);
            state.fifth = shuffled_xor(state.fifth, mask);
        }
        return state;
    }
};

template <> struct Fold<long> {
    using State = FoldState<long>;

    static State state_with(long x) { return {x, 0.0f, 0.0f, 0.0f, 0.0f}; }
    static long start() {
        switch (operation) { REDUCTION_INTEGERS(ORCHARD_CASE, IntegerFold, identity()) }
        return 0;
    }
    static long of_value(long x) {
        switch (operation) { REDUCTION_INTEGERS(ORCHARD_CASE, IntegerFold, of_element(x)) }
        return 0;
    }
    static long both(long a, long b) {
        switch (operation) { REDUCTION_INTEGERS(ORCHARD_CASE, IntegerFold, merge(a, b)) }
        return 0;
    }

    static int fields() { return 1; }
    static State identity() { return state_with(start()); }
    static State of_element(long x, float) { return state_with(of_value(x)); }
    static State merge(State a, State b) { return state_with(both(a.first, b.first)); }
    static long result(State state, constant ReductionParameters &) { return state.first; }
    static State shuffled(State state, ushort mask) { return state_with(shuffled_xor(state.first, mask)); }
};

#endif
