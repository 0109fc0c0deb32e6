// What is done with a matrix W whose rows rotations have made orthogonal: W = Gᵀ Σ Z, which svd.metal explains. Rows
// lie in threadgroup memory or in device memory. Every function is called by all threads of a threadgroup, but where it
// takes a lane, by all of a SIMD-group.
#pragma once

#include "linalg/jacobi.h"

// A barrier between what is done with norms, and with rows.
#define ROWS (mem_flags::mem_threadgroup | mem_flags::mem_device)

// info
#define NOT_FINITE 1
#define NOT_CONVERGED 2

// Where a thread is.
struct Place {
    uint matrix;
    uint index;
    uint threads;
    uint group;
    uint groups;
    uint lane;
};

// A matrix, and what of it is in memory. Rows, the norms of rows and the message are each in threadgroup or in device
// memory. Before there are norms, SIMD-groups tell each other in their place whether they rotated; in the message the
// first one tells all others a number.
template <typename Rows, typename Numbers> struct Matrix {
    uint small;
    uint large;
    uint count;  // rows of Z to compute: as many as `small`, or as `large`
    bool is_tall;
    bool has_vectors;
    device float *u;
    device float *s;
    device float *vh;
    Rows w;
    uint w_pitch;  // from row to row
    Rows g;
    uint g_pitch;
    Numbers norms;
    Numbers message;

    Row<Rows> row(uint at, uint lane) const { return Row<Rows>{w + at * w_pitch, large, lane}; }
    Row<Rows> rotations(uint at, uint lane) const { return Row<Rows>{g + at * g_pitch, small, lane}; }
    // The row `at` of Z where it goes: a column of U, or a row of Vᵀ.
    device float *open_row(uint at) const { return is_tall ? u + at : vh + ulong(at) * large; }
    ulong open_stride() const { return is_tall ? count : 1; }
};

inline float power_of_two(int exponent) { return as_type<float>(uint(exponent + 127) << 23); }

// x 2^exponent, in two steps, since that power may be no number.
inline float scaled(float x, int exponent) {
    int first = exponent / 2;
    return x * power_of_two(first) * power_of_two(exponent - first);
}

// A number that one lane reads for all.
template <typename Numbers> inline float number_of(Numbers x, uint at, uint lane) {
    return simd_broadcast(lane == 0 ? x[at] : 0.0f, 0);
}

// A number that the first SIMD-group knows, for all: each element is read once in all, and not by every SIMD-group.
template <typename Own> inline float told(Own own, float value, Place place) {
    if (place.index == 0) {
        own.message[0] = value;
    }
    threadgroup_barrier(ROWS);
    float known = number_of(own.message, 0, place.lane);
    threadgroup_barrier(ROWS);
    return known;
}

template <typename Own> inline bool is_sorted(Own own, uint lane) {
    bool is_behind = false;
    for (uint at = lane; at + 1 < own.small; at += LANES) {
        is_behind = is_behind || own.norms[at + 1] > own.norms[at];
    }
    return !simd_any(is_behind);
}

// The norms of the rows, and rows in their order: neighbours change places until none is out of it.
template <typename Own> inline void sort_rows(Own own, Place place) {
    for (uint at = place.group; at < own.small; at += place.groups) {
        float norm = norm_of(own.row(at, place.lane));
        if (place.lane == 0) {
            own.norms[at] = norm;
        }
    }
    threadgroup_barrier(ROWS);
    bool is_first_sorted = place.group == 0 && is_sorted(own, place.lane);
    uint steps = told(own, is_first_sorted ? 1.0f : 0.0f, place) != 0.0f ? 0 : own.small;
    for (uint step = 0; step < steps; step++) {
        for (uint at = step % 2 + 2 * place.group; at + 1 < own.small; at += 2 * place.groups) {
            float first = number_of(own.norms, at, place.lane);
            float second = number_of(own.norms, at + 1, place.lane);
            if (second > first) {
                Rotation swap = Rotation{0.0f, 0.0f, true, true};
                rotate(own.row(at, place.lane), own.row(at + 1, place.lane), swap);
                if (own.has_vectors) {
                    rotate(own.rotations(at, place.lane), own.rotations(at + 1, place.lane), swap);
                }
                if (place.lane == 0) {
                    own.norms[at] = second;
                    own.norms[at + 1] = first;
                }
            }
        }
        threadgroup_barrier(ROWS);
    }
}

// How many rows have a norm.
template <typename Own> inline uint rank_of(Own own, uint lane) {
    uint count = 0;
    for (uint at = lane; at < own.small; at += LANES) {
        count += own.norms[at] > 0.0f ? 1 : 0;
    }
    return simd_sum(count);
}

// Whether the element of the largest absolute value, the first of equal ones, is negative.
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

// Rows to length 1, and the signs of pairs of vectors by the left one.
template <typename Own> inline void normalise(Own own, uint rank, Place place) {
    for (uint at = place.group; at < own.small; at += place.groups) {
        auto z = own.row(at, place.lane);
        auto g = own.rotations(at, place.lane);
        float norm = number_of(own.norms, at, place.lane);
        for (uint e = place.lane; at < rank && e < z.length; e += LANES) {
            z.elements[e] = precise::divide(z.elements[e], norm);
        }
        bool is_left_open = own.is_tall && at >= rank;
        auto left = own.is_tall ? z : g;
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

// Writes the rows of Z that have a norm, and those of G; but where U = Zᵀ, those of G whose sign is open.
template <typename Own> inline void store(Own own, uint rank, Place place) {
    for (uint at = place.index; at < own.small * own.large; at += place.threads) {
        uint row = own.is_tall ? at % own.small : at / own.large;
        uint e = own.is_tall ? at / own.small : at % own.large;
        if (row < rank) {
            own.open_row(row)[e * own.open_stride()] = own.w[row * own.w_pitch + e];
        }
    }
    for (uint at = place.index; at < own.small * own.small; at += place.threads) {
        uint row = own.is_tall ? at / own.small : at % own.small;
        uint e = own.is_tall ? at % own.small : at / own.small;
        if (!own.is_tall) {
            own.u[at] = own.g[row * own.g_pitch + e];
        } else if (row < rank) {
            own.vh[at] = own.g[row * own.g_pitch + e];
        }
    }
    threadgroup_barrier(ROWS);
}

// Replaces the rows of Z that have a norm by reflections onto the axes.
template <typename Own> inline void make_reflections(Own own, uint rank, Place place) {
    for (uint t = 0; t < rank; t++) {
        auto v = own.row(t, place.lane);
        if (place.group == 0) {
            make_reflection(v, t);
        }
        threadgroup_barrier(ROWS);
        for (uint at = t + 1 + place.group; at < rank; at += place.groups) {
            reflect(v, t, own.w + at * own.w_pitch, 1);
        }
        threadgroup_barrier(ROWS);
    }
}

// The rows of Z from `rank` on, in place; and the rows of G that get their signs from them.
template <typename Own> inline void complete(Own own, uint rank, Place place) {
    make_reflections(own, rank, place);
    ulong stride = own.open_stride();
    for (uint at = rank + place.group; at < own.count; at += place.groups) {
        device float *y = own.open_row(at);
        for (uint e = place.lane; e < own.large; e += LANES) {
            y[e * stride] = e == at ? 1.0f : 0.0f;
        }
        for (uint t = rank; t > 0; t--) {
            reflect(own.row(t - 1, place.lane), t - 1, y, stride);
        }
        bool has_sign = own.is_tall || at >= own.small;
        float sign = has_sign && is_turned(y, stride, own.large, place.lane) ? -1.0f : 1.0f;
        for (uint e = place.lane; e < own.large; e += LANES) {
            y[e * stride] *= sign;
        }
        for (uint e = place.lane; own.is_tall && at < own.small && e < own.small; e += LANES) {
            own.vh[at * own.small + e] = sign * own.g[at * own.g_pitch + e];
        }
    }
}

template <typename Own> inline void fill_with_nan(Own own, Place place) {
    for (uint at = place.index; at < own.small; at += place.threads) {
        own.s[at] = NAN;
    }
    for (uint at = place.index; own.has_vectors && at < own.count * own.large; at += place.threads) {
        (own.is_tall ? own.u : own.vh)[at] = NAN;
    }
    for (uint at = place.index; own.has_vectors && at < own.small * own.small; at += place.threads) {
        (own.is_tall ? own.vh : own.u)[at] = NAN;
    }
}

// Writes the results of rows that are orthogonal, of a matrix that was divided by 2^exponent.
template <typename Own> inline void finish(Own own, int exponent, Place place) {
    sort_rows(own, place);
    uint rank = uint(told(own, place.group == 0 ? float(rank_of(own, place.lane)) : 0.0f, place));
    if (own.has_vectors) {
        normalise(own, rank, place);
    }
    threadgroup_barrier(ROWS);
    for (uint at = place.index; at < own.small; at += place.threads) {
        own.s[at] = scaled(own.norms[at], exponent);
    }
    if (own.has_vectors) {
        store(own, rank, place);
    }
    if (own.has_vectors && rank < own.count) {
        complete(own, rank, place);
    }
}
