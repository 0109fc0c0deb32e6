// The steps after rotations have made the rows of W orthogonal: W = Gᵀ Σ Z (see svd.metal). Rows are in threadgroup or
// in device memory. Every function must be called by all threads of a threadgroup; functions with a `lane` parameter
// must be called by all lanes of a SIMD-group.
#pragma once

#include "linalg/jacobi.h"
#include "linalg/place.h"

// A barrier that orders accesses to norms and rows in both memories.
#define ROWS (mem_flags::mem_threadgroup | mem_flags::mem_device)

// Values of `info`.
#define NOT_FINITE 1
#define NOT_CONVERGED 2

// A matrix and its working memory. Rows, norms and the message may each be in threadgroup or in device memory. Before
// norms are computed, SIMD-groups use their memory to report whether they rotated. The message passes one number from
// the first SIMD-group to all others.
template <typename Rows, typename Numbers> struct Matrix {
    uint small;
    uint large;
    uint count;  // number of rows of Z to compute: `small` or `large`
    bool is_tall;
    bool has_vectors;
    device float *u;
    device float *s;
    device float *vh;
    Rows w;
    uint w_pitch;  // distance between rows
    Rows g;
    uint g_pitch;
    Numbers norms;
    Numbers message;

    Row<Rows> row(uint at, uint lane) const { return Row<Rows>{w + at * w_pitch, large, lane}; }
    Row<Rows> rotations(uint at, uint lane) const { return Row<Rows>{g + at * g_pitch, small, lane}; }
    // Returns the address where row `at` of Z is written: a column of U, or a row of Vᵀ.
    device float *open_row(uint at) const { return is_tall ? u + at : vh + ulong(at) * large; }
    ulong open_stride() const { return is_tall ? count : 1; }
};

inline float power_of_two(int exponent) { return as_type<float>(uint(exponent + 127) << 23); }

// Returns x 2^exponent, in two steps, since the power itself may overflow or underflow.
inline float scaled(float x, int exponent) {
    int first = exponent / 2;
    return x * power_of_two(first) * power_of_two(exponent - first);
}

// Reads a number in one lane and broadcasts it.
template <typename Numbers> inline float number_of(Numbers x, uint at, uint lane) {
    return simd_broadcast(lane == 0 ? x[at] : 0.0f, 0);
}

// Passes a number from the first SIMD-group to all others. Only the first one reads the elements from which the number
// is computed.
template <typename M> inline float told(M matrix, float value, Place place) {
    if (place.index == 0) {
        matrix.message[0] = value;
    }
    threadgroup_barrier(ROWS);
    float known = number_of(matrix.message, 0, place.lane);
    threadgroup_barrier(ROWS);
    return known;
}

template <typename M> inline bool is_sorted(M matrix, uint lane) {
    bool is_behind = false;
    for (uint at = lane; at + 1 < matrix.small; at += LANES) {
        is_behind = is_behind || matrix.norms[at + 1] > matrix.norms[at];
    }
    return !simd_any(is_behind);
}

// Computes the norms of the rows and sorts the rows by them. Adjacent rows are swapped until all are in order (odd-even
// transposition sort).
template <typename M> inline void sort_rows(M matrix, Place place) {
    for (uint at = place.group; at < matrix.small; at += place.groups) {
        float norm = norm_of(matrix.row(at, place.lane));
        if (place.lane == 0) {
            matrix.norms[at] = norm;
        }
    }
    threadgroup_barrier(ROWS);
    bool is_first_sorted = place.group == 0 && is_sorted(matrix, place.lane);
    uint steps = told(matrix, is_first_sorted ? 1.0f : 0.0f, place) != 0.0f ? 0 : matrix.small;
    for (uint step = 0; step < steps; step++) {
        for (uint at = step % 2 + 2 * place.group; at + 1 < matrix.small; at += 2 * place.groups) {
            float first = number_of(matrix.norms, at, place.lane);
            float second = number_of(matrix.norms, at + 1, place.lane);
            if (second > first) {
                Rotation swap = Rotation{0.0f, 0.0f, true, true};
                rotate(matrix.row(at, place.lane), matrix.row(at + 1, place.lane), swap);
                if (matrix.has_vectors) {
                    rotate(matrix.rotations(at, place.lane), matrix.rotations(at + 1, place.lane), swap);
                }
                if (place.lane == 0) {
                    matrix.norms[at] = second;
                    matrix.norms[at + 1] = first;
                }
            }
        }
        threadgroup_barrier(ROWS);
    }
}

// Returns the number of rows whose norm is above 0.
template <typename M> inline uint rank_of(M matrix, uint lane) {
    uint count = 0;
    for (uint at = lane; at < matrix.small; at += LANES) {
        count += matrix.norms[at] > 0.0f ? 1 : 0;
    }
    return simd_sum(count);
}

// Returns whether the element with the largest absolute value, the first of equal ones, is negative.
template <typename Pointer> inline bool is_turned(Pointer x, ulong stride, uint length, uint lane) {
    float largest = -1.0f;
    uint first = 0;
    for (uint e = lane; e < length; e += LANES) {
        float size = abs(x[e * stride]);
        first = size > largest ? e : first;
        largest = max(largest, size);
    }
    float overall = simd_max(largest);
    uint chosen = simd_min(largest == overall ? first : length);
    return simd_any(chosen % LANES == lane && x[chosen * stride] < 0.0f);
}

// Normalizes rows, and fixes the sign of each pair of singular vectors by the left one.
template <typename M> inline void normalize_vectors(M matrix, uint rank, Place place) {
    for (uint at = place.group; at < matrix.small; at += place.groups) {
        auto z = matrix.row(at, place.lane);
        auto g = matrix.rotations(at, place.lane);
        float norm = number_of(matrix.norms, at, place.lane);
        for (uint e = place.lane; at < rank && e < z.length; e += LANES) {
            z.elements[e] = precise::divide(z.elements[e], norm);
        }
        bool is_left_open = matrix.is_tall && at >= rank;
        auto left = matrix.is_tall ? z : g;
        if (!is_left_open && is_turned(left.elements, 1, left.length, place.lane)) {
            for (uint e = place.lane; e < z.length; e += LANES) {
                z.elements[e] = -z.elements[e];
            }
            for (uint e = place.lane; e < g.length; e += LANES) {
                g.elements[e] = -g.elements[e];
            }
        }
    }
}

// Writes the rows of Z with a positive norm, and the rows of G. If U = Zᵀ, skips rows of G whose sign is not known yet.
template <typename M> inline void store(M matrix, uint rank, Place place) {
    for (uint at = place.index; at < matrix.small * matrix.large; at += place.threads) {
        uint row = matrix.is_tall ? at % matrix.small : at / matrix.large;
        uint e = matrix.is_tall ? at / matrix.small : at % matrix.large;
        if (row < rank) {
            matrix.open_row(row)[e * matrix.open_stride()] = matrix.w[row * matrix.w_pitch + e];
        }
    }
    for (uint at = place.index; at < matrix.small * matrix.small; at += place.threads) {
        uint row = matrix.is_tall ? at / matrix.small : at % matrix.small;
        uint e = matrix.is_tall ? at % matrix.small : at / matrix.small;
        if (!matrix.is_tall) {
            matrix.u[at] = matrix.g[row * matrix.g_pitch + e];
        } else if (row < rank) {
            matrix.vh[at] = matrix.g[row * matrix.g_pitch + e];
        }
    }
    threadgroup_barrier(ROWS);
}

// Replaces the rows of Z with a positive norm by the reflections that map them onto the axes.
template <typename M> inline void make_reflections(M matrix, uint rank, Place place) {
    for (uint t = 0; t < rank; t++) {
        auto v = matrix.row(t, place.lane);
        if (place.group == 0) {
            make_reflection(v, t);
        }
        threadgroup_barrier(ROWS);
        for (uint at = t + 1 + place.group; at < rank; at += place.groups) {
            reflect(v, t, matrix.w + at * matrix.w_pitch, 1);
        }
        threadgroup_barrier(ROWS);
    }
}

// Computes the remaining rows of Z, from `rank` on, in place, and writes the rows of G whose signs depend on them.
template <typename M> inline void complete(M matrix, uint rank, Place place) {
    make_reflections(matrix, rank, place);
    ulong stride = matrix.open_stride();
    for (uint at = rank + place.group; at < matrix.count; at += place.groups) {
        device float *y = matrix.open_row(at);
        for (uint e = place.lane; e < matrix.large; e += LANES) {
            y[e * stride] = e == at ? 1.0f : 0.0f;
        }
        for (uint t = rank; t > 0; t--) {
            reflect(matrix.row(t - 1, place.lane), t - 1, y, stride);
        }
        bool has_sign = matrix.is_tall || at >= matrix.small;
        float sign = has_sign && is_turned(y, stride, matrix.large, place.lane) ? -1.0f : 1.0f;
        for (uint e = place.lane; e < matrix.large; e += LANES) {
            y[e * stride] *= sign;
        }
        for (uint e = place.lane; matrix.is_tall && at < matrix.small && e < matrix.small; e += LANES) {
            matrix.vh[at * matrix.small + e] = sign * matrix.g[at * matrix.g_pitch + e];
        }
    }
}

template <typename M> inline void fill_with_nan(M matrix, Place place) {
    for (uint at = place.index; at < matrix.small; at += place.threads) {
        matrix.s[at] = NAN;
    }
    for (uint at = place.index; matrix.has_vectors && at < matrix.count * matrix.large; at += place.threads) {
        (matrix.is_tall ? matrix.u : matrix.vh)[at] = NAN;
    }
    for (uint at = place.index; matrix.has_vectors && at < matrix.small * matrix.small; at += place.threads) {
        (matrix.is_tall ? matrix.vh : matrix.u)[at] = NAN;
    }
}

// Writes the results once the rows are orthogonal. The matrix had been divided by 2^exponent.
template <typename M> inline void finish(M matrix, int exponent, Place place) {
    sort_rows(matrix, place);
    uint rank = uint(told(matrix, place.group == 0 ? float(rank_of(matrix, place.lane)) : 0.0f, place));
    if (matrix.has_vectors) {
        normalize_vectors(matrix, rank, place);
    }
    threadgroup_barrier(ROWS);
    for (uint at = place.index; at < matrix.small; at += place.threads) {
        matrix.s[at] = scaled(matrix.norms[at], exponent);
    }
    if (matrix.has_vectors) {
        store(matrix, rank, place);
    }
    if (matrix.has_vectors && rank < matrix.count) {
        complete(matrix, rank, place);
    }
}
