// The mean and the sum of squared deviations of a row. For each block that a team keeps in registers, first the mean is
// computed, then the deviations from it; then blocks are merged.
//
// A mean is stored together with its rounding error, which is computed from the sum of the deviations: far from zero,
// the rounding error would exceed small deviations. Source: Chan, Golub and LeVeque, "Algorithms for computing the
// sample variance: analysis and recommendations", 1983 (the corrected two-pass algorithm, and the merge of two blocks).

#ifndef ORCHARD_NORMALIZATION_MOMENTS_H
#define ORCHARD_NORMALIZATION_MOMENTS_H

#include "normalization/rows.h"
#include "reduction/online.h"

// If rows are not centered, `squares` is Σ x², and `mean` and `lost` are 0.
struct Moments {
    float mean;
    float lost;     // the mean is mean + lost
    float squares;  // Σ (x - mean)²
    float count;
};

// Threadgroup memory for exchanging one number, and two numbers.
struct Exchanges {
    Exchange<float> one;
    Exchange<float2> two;
};

// Computes the moments of a block of `length` elements, in all threads of the team. `held` is 0 beyond the end of the
// block.
inline Moments team_moments(thread const float (&held)[HELD], uint lane, uint length, thread Exchanges &exchanges) {
    const float count = float(length);
    if (!is_centered()) {
        float squares = 0.0f;
        for (uint i = 0; i < COUNT; i += 1) {
            squares += held[i] * held[i];
        }
        return {0.0f, 0.0f, team_combined<Sum>(squares, exchanges.one), count};
    }
    float sum = 0.0f;
    for (uint i = 0; i < COUNT; i += 1) {
        sum += held[i];
    }
    const float mean = team_combined<Sum>(sum, exchanges.one) / count;
    float2 sums = 0.0f;
    for (uint i = 0; i < COUNT; i += 1) {
        const float deviation = lane + i * LANES < length ? held[i] - mean : 0.0f;
        sums += float2(deviation, deviation * deviation);
    }
    sums = team_combined<Sum>(sums, exchanges.two);
    const float lost = sums.x / count;
    const float squares = sums.y - sums.x * lost;
    return {mean, lost, squares < 0.0f ? 0.0f : squares, count};
}

// Merges the moments of two blocks.
inline Moments merged(Moments a, Moments b) {
    const float count = a.count + b.count;
    if (!is_centered()) return {0.0f, 0.0f, a.squares + b.squares, count};
    const float difference = (b.mean - a.mean) + (b.lost - a.lost);
    const float share = b.count / count;
    const float step = a.lost + difference * share;
    const float mean = a.mean + step;
    const float apart = difference * difference * (a.count * share);
    return {mean, two_sum_error(a.mean, step, mean), (a.squares + b.squares) + apart, count};
}

// Returns whether a mean of squares (plus eps) is accurate: no square overflowed, and squares that underflowed are
// negligible. Returns false for NaN.
inline bool is_in_range(float mean_square) {
    return mean_square > 8.27180613e-25f && mean_square < 1.2676506e+30f;  // 2^-80, 2^100
}

// Returns the power of two that scales the largest element of a row to at most 1; 1 if that element is 0 or not finite.
inline float unit_of(float largest) {
    if (largest == 0.0f || !isfinite(largest)) return 1.0f;
    int exponent = 0;
    frexp(largest, exponent);
    return ldexp(1.0f, clamp(-exponent, -126, 126));
}

#endif
