// Helpers for reductions that must handle NaN and infinity correctly, and for log Σ exp(x) = shift + log Σ exp(x -
// shift) in one pass: a sum relative to one largest element is rescaled to another.

#ifndef ORCHARD_REDUCTION_ONLINE_H
#define ORCHARD_REDUCTION_ONLINE_H

// Returns the larger number; NaN if either is NaN.
template <typename Number> inline Number larger(Number a, Number b) { return a >= b || a != a ? a : b; }
template <typename Number> inline Number smaller(Number a, Number b) { return a <= b || a != a ? a : b; }

// Returns the shift in exp(x - shift): the largest element, or 0 if that is infinite.
inline float shift_of(float largest) { return isinf(largest) ? 0.0f : largest; }

inline float rescaled(float sum, float from, float to) {
    return sum == 0.0f ? 0.0f : sum * precise::exp(shift_of(from) - shift_of(to));
}

// Returns the rounding error of `sum` = a + b: Knuth's TwoSum, exact for any two finite numbers.
inline float two_sum_error(float a, float b, float sum) {
    float part = sum - a;
    return (a - (sum - part)) + (b - part);
}

#endif
