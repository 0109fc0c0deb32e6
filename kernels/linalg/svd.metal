// A = U Σ Vᵀ by one-sided Jacobi rotations, one threadgroup for each matrix. W, of `small` rows and `large` columns, is
// A where it is wide, else Aᵀ; rotations G make its rows orthogonal:
//
//   G W = Σ Z,  W = Gᵀ Σ Z:  U = Gᵀ and Vᵀ = Z where A is wide, else U = Zᵀ and Vᵀ = G
//
// The rows of Z that Σ = 0 leaves open, and those that square factors have more, are the last columns of the product of
// reflections that maps the others onto axes. Rows are kept in falling order of their norms.

#include <metal_stdlib>
using namespace metal;

#include "linalg/jacobi.h"

// A barrier between what is done with norms, and with rows.
#define NORMS (mem_flags::mem_threadgroup | mem_flags::mem_device)

// info
#define NOT_FINITE 1
#define NOT_CONVERGED 2

struct Svd {
    long batch;
    long rows;
    long columns;
    uint vectors;  // 1 or 0
    uint full;     // 1 or 0: whether U and V are square
};

// Where a thread is.
struct Place {
    uint matrix;
    uint index;
    uint threads;
    uint group;
    uint groups;
    uint lane;
};

// A matrix, and what of it is in memory. `norms` are of rows; before, SIMD-groups tell each other there whether they
// rotated. They are in threadgroup memory where that has room for them, else where the singular values go.
template <typename Numbers> struct Matrix {
    uint small;
    uint large;
    uint count;  // rows of Z that are wanted: as many as `small`, or as `large`
    bool is_tall;
    bool has_vectors;
    device float *u;
    device float *s;
    device float *vh;
    threadgroup float *w;
    threadgroup float *g;
    Numbers norms;

    Row row(uint at, uint lane) const { return Row{w + at * large, large, lane}; }
    Row rotations(uint at, uint lane) const { return Row{g + at * small, small, lane}; }
    // The row `at` of Z where it goes: a column of U, or a row of Vᵀ.
    device float *open_row(uint at) const { return is_tall ? u + at : vh + ulong(at) * large; }
    ulong open_stride() const { return is_tall ? count : 1; }
};

// The exponent of the largest element, or a number above any where one is infinite or NaN.
#define NO_EXPONENT 1000
template <typename Numbers> inline int exponent_of(Matrix<Numbers> own, uint lane) {
    uint largest = 0;
    for (uint at = lane; at < own.small * own.large; at += LANES) {
        largest = max(largest, as_type<uint>(own.w[at]) & 0x7fffffffu);
    }
    largest = simd_max(largest);
    return largest >= 0x7f800000u ? NO_EXPONENT : int(largest >> 23) - 127;
}

inline float power_of_two(int exponent) { return as_type<float>(uint(exponent + 127) << 23); }

// x 2^exponent, in two steps, since that power may be no number.
inline float scaled(float x, int exponent) {
    int first = exponent / 2;
    return x * power_of_two(first) * power_of_two(exponent - first);
}

template <typename Numbers> inline void load(Matrix<Numbers> own, device const float *a, Place place) {
    for (uint at = place.index; at < own.small * own.large; at += place.threads) {
        uint to = own.is_tall ? at % own.small * own.large + at / own.small : at;
        own.w[to] = a[at];
    }
    for (uint at = place.index; own.has_vectors && at < own.small * own.small; at += place.threads) {
        own.g[at] = at / own.small == at % own.small ? 1.0f : 0.0f;
    }
}

// Rotates until a sweep over all pairs finds each orthogonal. SIMD-groups tell each other through the memory of the
// singular values whether they rotated.
template <typename Numbers> inline bool orthogonalise(Matrix<Numbers> own, Place place) {
    uint pairs = (own.small + 1) / 2;
    uint rounds = 2 * pairs - 1;
    for (uint sweep = 0; sweep < SWEEPS; sweep++) {
        bool is_rotated = false;
        for (uint round = 0; round < rounds; round++) {
            for (uint at = place.group; at < pairs; at += place.groups) {
                uint2 pair = pair_of(at, round, rounds);
                if (pair.y < own.small) {
                    Row x = own.row(pair.x, place.lane);
                    Row y = own.row(pair.y, place.lane);
                    Rotation rotation = rotation_of(x, y);
                    rotate(x, y, rotation);
                    if (own.has_vectors) {
                        rotate(own.rotations(pair.x, place.lane), own.rotations(pair.y, place.lane), rotation);
                    }
                    is_rotated = is_rotated || rotation.is_needed;
                }
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
        if (place.lane == 0) {
            own.norms[place.group] = is_rotated ? 1.0f : 0.0f;
        }
        threadgroup_barrier(NORMS);
        bool is_other = place.lane < place.groups && own.norms[place.lane] != 0.0f;
        bool is_done = !simd_any(is_other);
        threadgroup_barrier(NORMS);
        if (is_done) {
            return true;
        }
    }
    return false;
}

// A number that one lane reads for all.
template <typename Numbers> inline float number_of(Numbers x, uint at, uint lane) {
    return simd_broadcast(lane == 0 ? x[at] : 0.0f, 0);
}

template <typename Numbers> inline bool is_sorted(Matrix<Numbers> own, uint lane) {
    bool is_behind = false;
    for (uint at = lane; at + 1 < own.small; at += LANES) {
        is_behind = is_behind || own.norms[at + 1] > own.norms[at];
    }
    return !simd_any(is_behind);
}

// The norms of the rows, and rows in their order: neighbours change places until none is out of it.
template <typename Numbers> inline void sort_rows(Matrix<Numbers> own, Place place) {
    for (uint at = place.group; at < own.small; at += place.groups) {
        float norm = norm_of(own.row(at, place.lane));
        if (place.lane == 0) {
            own.norms[at] = norm;
        }
    }
    threadgroup_barrier(NORMS);
    uint steps = is_sorted(own, place.lane) ? 0 : own.small;
    threadgroup_barrier(NORMS);
    for (uint step = 0; step < steps; step++) {
        for (uint at = step % 2 + 2 * place.group; at + 1 < own.small; at += 2 * place.groups) {
            float first = number_of(own.norms, at, place.lane);
            float second = number_of(own.norms, at + 1, place.lane);
            if (second > first) {
                Rotation swap = Rotation{0.0f, 0.0f, true, false};
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
        threadgroup_barrier(NORMS);
    }
}

// How many rows have a norm.
template <typename Numbers> inline uint rank_of(Matrix<Numbers> own, uint lane) {
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
template <typename Numbers> inline void normalise(Matrix<Numbers> own, uint rank, Place place) {
    for (uint at = place.group; at < own.small; at += place.groups) {
        Row z = own.row(at, place.lane);
        Row g = own.rotations(at, place.lane);
        float norm = number_of(own.norms, at, place.lane);
        for (uint e = place.lane; at < rank && e < z.length; e += LANES) {
            z.elements[e] = precise::divide(z.elements[e], norm);
        }
        bool is_left_open = own.is_tall && at >= rank;
        Row left = own.is_tall ? z : g;
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
template <typename Numbers> inline void store(Matrix<Numbers> own, uint rank, Place place) {
    for (uint at = place.index; at < own.small * own.large; at += place.threads) {
        uint row = own.is_tall ? at % own.small : at / own.large;
        uint e = own.is_tall ? at / own.small : at % own.large;
        if (row < rank) {
            own.open_row(row)[e * own.open_stride()] = own.w[row * own.large + e];
        }
    }
    for (uint at = place.index; at < own.small * own.small; at += place.threads) {
        uint row = own.is_tall ? at / own.small : at % own.small;
        uint e = own.is_tall ? at % own.small : at / own.small;
        if (!own.is_tall) {
            own.u[at] = own.g[row * own.small + e];
        } else if (row < rank) {
            own.vh[at] = own.g[row * own.small + e];
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

// Replaces the rows of Z that have a norm by reflections onto the axes.
template <typename Numbers> inline void make_reflections(Matrix<Numbers> own, uint rank, Place place) {
    for (uint t = 0; t < rank; t++) {
        Row v = own.row(t, place.lane);
        if (place.group == 0) {
            make_reflection(v, t);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint at = t + 1 + place.group; at < rank; at += place.groups) {
            reflect(v, t, own.w + at * own.large, 1);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
}

// The rows of Z from `rank` on, in place; and the rows of G that get their signs from them.
template <typename Numbers> inline void complete(Matrix<Numbers> own, uint rank, Place place) {
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
            own.vh[at * own.small + e] = sign * own.g[at * own.small + e];
        }
    }
}

template <typename Numbers> inline void fill_with_nan(Matrix<Numbers> own, Place place) {
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

// Returns what `info` becomes.
template <typename Numbers> inline int factorise(Matrix<Numbers> own, device const float *a, Place place) {
    load(own, a, place);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    int exponent = exponent_of(own, place.lane);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (exponent == NO_EXPONENT) {
        fill_with_nan(own, place);
        return NOT_FINITE;
    }
    for (uint at = place.index; at < own.small * own.large; at += place.threads) {
        own.w[at] = scaled(own.w[at], -exponent);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (own.small > 1 && !orthogonalise(own, place)) {
        fill_with_nan(own, place);
        return NOT_CONVERGED;
    }
    sort_rows(own, place);
    uint rank = rank_of(own, place.lane);
    if (own.has_vectors) {
        normalise(own, rank, place);
    }
    threadgroup_barrier(NORMS);
    for (uint at = place.index; at < own.small; at += place.threads) {
        own.s[at] = scaled(own.norms[at], exponent);
    }
    if (own.has_vectors) {
        store(own, rank, place);
    }
    if (own.has_vectors && rank < own.count) {
        complete(own, rank, place);
    }
    return 0;
}

// a     [[buffer(0)]]  batch × rows × columns
// u     [[buffer(1)]]  batch × rows × min(rows, columns), or rows × rows; not written without vectors
// s     [[buffer(2)]]  batch × min(rows, columns)
// vh    [[buffer(3)]]  batch × min(rows, columns) × columns, or columns × columns; not written without vectors
// info  [[buffer(4)]]  batch: 0, NOT_FINITE or NOT_CONVERGED; then the other results are NaN
// w      [[threadgroup(0)]]  rows × columns
// g      [[threadgroup(1)]]  min(rows, columns)², with vectors
// norms  [[threadgroup(2)]]  min(rows, columns), in `svd`
//
// `svd_without_norms` is for matrices that leave no threadgroup memory for norms.
#define SVD(name, numbers, norms_of, ...)                                                                        \
    kernel void name(                                                                                            \
        device const float *a [[buffer(0)]], device float *u [[buffer(1)]], device float *s [[buffer(2)]],       \
        device float *vh [[buffer(3)]], device int *info [[buffer(4)]], constant Svd &problem [[buffer(5)]],     \
        threadgroup float *w [[threadgroup(0)]], threadgroup float *g [[threadgroup(1)]],                        \
        __VA_ARGS__ uint matrix [[threadgroup_position_in_grid]], uint index [[thread_position_in_threadgroup]], \
        uint threads [[threads_per_threadgroup]], uint group [[simdgroup_index_in_threadgroup]],                 \
        uint groups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {                   \
        uint rows = uint(problem.rows);                                                                          \
        uint columns = uint(problem.columns);                                                                    \
        bool is_full = problem.full != 0;                                                                        \
        Matrix<numbers> own;                                                                                     \
        own.small = min(rows, columns);                                                                          \
        own.large = max(rows, columns);                                                                          \
        own.count = is_full ? own.large : own.small;                                                             \
        own.is_tall = rows >= columns;                                                                           \
        own.has_vectors = problem.vectors != 0;                                                                  \
        own.u = u + ulong(matrix) * rows * (is_full ? rows : own.small);                                         \
        own.s = s + ulong(matrix) * own.small;                                                                   \
        own.vh = vh + ulong(matrix) * columns * (is_full ? columns : own.small);                                 \
        own.w = w;                                                                                               \
        own.g = g;                                                                                               \
        own.norms = norms_of;                                                                                    \
        Place place = Place{matrix, index, threads, group, groups, lane};                                        \
        int found = factorise(own, a + ulong(matrix) * rows * columns, place);                                   \
        if (index == 0) {                                                                                        \
            info[matrix] = found;                                                                                \
        }                                                                                                        \
    }

typedef threadgroup float *SharedNumbers;
typedef device float *DeviceNumbers;
SVD(svd, SharedNumbers, norms, threadgroup float *norms [[threadgroup(2)]], )
SVD(svd_without_norms, DeviceNumbers, own.s, )
