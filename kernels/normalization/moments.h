// The mean and the squared deviations of a row in one pass: of what a thread holds in two, then of blocks together.
//
// Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979. A mean is
// kept with the error of its rounding: far from zero that is all of a small deviation.

#ifndef ORCHARD_NORMALIZATION_MOMENTS_H
#define ORCHARD_NORMALIZATION_MOMENTS_H

#include "normalization/rows.h"
#include "reduction/online.h"

// Where rows are not centred, squares are Σ x² and all others are 0.
struct Moments {
    float mean;
    float lost;     // the error of the mean's rounding
    float squares;  // Σ (x - mean)²
    float count;
};

inline Moments merged(Moments a, Moments b) {
    if (!is_centred()) return {0.0f, 0.0f, a.squares + b.squares, 0.0f};
    if (b.count == 0.0f) return a;
    if (a.count == 0.0f) return b;
    float count = a.count + b.count;
    float difference = (b.mean - a.mean) + (b.lost - a.lost);
    float share = b.count / count;
    float step = a.lost + difference * share;
    float mean = a.mean + step;
    float lost = two_sum_error(a.mean, step, mean);
    float squares = a.squares + b.squares + difference * difference * (a.count * share);
    return {mean, isfinite(mean) ? lost : 0.0f, squares, count};
}

// Of `count` elements that a thread holds.
inline Moments moments_of(thread const float (&held)[HELD], uint count) {
    float sum = 0.0f;
    for (uint i = 0; i < HELD; i += 1) {
        sum += i < count ? held[i] : 0.0f;
    }
    float mean = is_centred() && count > 0 ? sum / float(count) : 0.0f;
    float remainder = 0.0f;
    float squares = 0.0f;
    for (uint i = 0; i < HELD; i += 1) {
        float deviation = i < count ? held[i] - mean : 0.0f;
        remainder += deviation;
        squares += deviation * deviation;
    }
    float lost = count > 0 && isfinite(mean) ? remainder / float(count) : 0.0f;
    return is_centred() ? Moments{mean, lost, squares, float(count)} : Moments{0.0f, 0.0f, squares, 0.0f};
}

inline Moments shuffled(Moments own, ushort mask) {
    own.squares = simd_shuffle_xor(own.squares, mask);
    if (is_centred()) {
        own.mean = simd_shuffle_xor(own.mean, mask);
        own.lost = simd_shuffle_xor(own.lost, mask);
        own.count = simd_shuffle_xor(own.count, mask);
    }
    return own;
}

// Of a team's elements, in all of its threads. The lower lane comes first on both sides of an exchange, so that all get
// the same bits.
inline Moments team_moments(Moments own, threadgroup Moments *parts, uint thread_index) {
    for (ushort mask = 1; mask < 32; mask *= 2) {
        Moments other = shuffled(own, mask);
        own = (thread_index & mask) == 0 ? merged(own, other) : merged(other, own);
    }
    if (LANES == 32) return own;
    threadgroup_barrier(mem_flags::mem_threadgroup);  // the last row's have been read
    if (thread_index % 32 == 0) {
        parts[thread_index / 32] = own;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    Moments all = parts[0];
    for (uint part = 1; part < SIMDGROUPS; part += 1) {
        all = merged(all, parts[part]);
    }
    return all;
}

#endif
