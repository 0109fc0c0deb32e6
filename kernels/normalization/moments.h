// The mean and the squared deviations of a row in one pass: of what a thread holds in two, then of blocks together.
//
// Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979. A mean is
// kept with the error of its rounding: far from zero that is all of a small deviation.

#ifndef ORCHARD_NORMALIZATION_MOMENTS_H
#define ORCHARD_NORMALIZATION_MOMENTS_H

#include "common/extended.h"
#include "normalization/rows.h"
#include "reduction/online.h"

// Where rows are not centred, squares are Σ x² and all others are 0.
struct Moments {
    float mean;
    float lost;       // the error of the mean's rounding
    Squares squares;  // Σ (x - mean)²
    float count;
};

inline Moments no_moments() { return {0.0f, 0.0f, {0.0f, -1}, 0.0f}; }

inline Moments merged(Moments a, Moments b) {
    if (!is_centred()) return {0.0f, 0.0f, added(a.squares, b.squares), 0.0f};
    if (b.count == 0.0f) return a;
    if (a.count == 0.0f) return b;
    float count = a.count + b.count;
    float half_difference = (0.5f * b.mean - 0.5f * a.mean) + 0.5f * (b.lost - a.lost);  // all of it may overflow
    float share = b.count / count;
    float step = a.lost + half_difference * (2.0f * share);
    float mean = a.mean + step;
    float lost = two_sum_error(a.mean, step, mean);
    Squares apart = square_of(half_difference);
    apart.sum *= 4.0f * (a.count * share);
    return {mean, isfinite(mean) ? lost : 0.0f, added(added(a.squares, b.squares), apart), count};
}

// The largest of what a thread holds, unless it is NaN.
inline float largest_of(thread const float (&held)[HELD], float mean, uint count) {
    float largest = 0.0f;
    for (uint i = 0; i < HELD; i += 1) {
        largest = i < count ? max(largest, abs(held[i] - mean)) : largest;
    }
    return largest;
}

// Of `count` elements that a thread holds. Their squares are of one level, that of the largest.
inline Moments moments_of(thread const float (&held)[HELD], uint count) {
    if (count == 0) return no_moments();
    float mean = 0.0f;
    if (is_centred()) {
        const bool is_large = largest_of(held, 0.0f, count) >= 0x1p100f;
        const float unit = is_large ? 0x1p-64f : 1.0f;
        float sum = 0.0f;
        for (uint i = 0; i < HELD; i += 1) {
            sum += i < count ? held[i] * unit : 0.0f;
        }
        mean = sum / float(count) * (is_large ? 0x1p64f : 1.0f);
    }
    const int level = square_of(largest_of(held, mean, count)).level;
    const float unit = unit_of(level);
    float remainder = 0.0f;
    float squares = 0.0f;
    for (uint i = 0; i < HELD; i += 1) {
        const float deviation = i < count ? (held[i] - mean) * unit : 0.0f;
        remainder += deviation;
        squares += deviation * deviation;
    }
    const float lost = isfinite(mean) ? remainder / float(count) * unit_of(-level) : 0.0f;
    return is_centred() ? Moments{mean, lost, {squares, level}, float(count)}
                        : Moments{0.0f, 0.0f, {squares, level}, 0.0f};
}

// 1 / sqrt(squares / length + eps), as a factor and what to multiply with before, so that neither overflows.
struct Scale {
    float factor;
    float unit;
};

inline Scale scale_of(Squares squares, float length, float eps) {
    Squares mean = {squares.sum / length, squares.level};
    Squares least = square_of(precise::sqrt(eps));
    least.sum = eps * unit_of(least.level) * unit_of(least.level);
    mean = added(mean, least);
    return {precise::rsqrt(mean.sum), unit_of(mean.level)};
}

inline Moments shuffled(Moments own, ushort mask) {
    own.squares.sum = simd_shuffle_xor(own.squares.sum, mask);
    own.squares.level = simd_shuffle_xor(own.squares.level, mask);
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
