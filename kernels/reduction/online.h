// Pieces of reductions that must treat NaN and infinity right, and of log Σ exp(x) = shift + log Σ exp(x - shift) in
// one pass: a sum that was made with one largest element so far is rescaled to another.

#ifndef ORCHARD_REDUCTION_ONLINE_H
#define ORCHARD_REDUCTION_ONLINE_H

// The larger one; a NaN where there is one.
template <typename Number> inline Number larger(Number a, Number b) { return a >= b || a != a ? a : b; }
template <typename Number> inline Number smaller(Number a, Number b) { return a <= b || a != a ? a : b; }

// What exp(x - largest) is taken of: 0 in place of an infinite largest element.
inline float shift_of(float largest) { return isinf(largest) ? 0.0f : largest; }

inline float rescaled(float sum, float from, float to) {
    return sum == 0.0f ? 0.0f : sum * precise::exp(shift_of(from) - shift_of(to));
}

// What a + b lost when it was rounded to `sum`: Knuth's TwoSum, exact for any two finite numbers.
inline float two_sum_error(float a, float b, float sum) {
    float part = sum - a;
    return (a - (sum - part)) + (b - part);
}

#endif
