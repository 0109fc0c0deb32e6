// A = U Σ Vᵀ by one-sided Jacobi rotations, one threadgroup per matrix. W has `small` rows and `large` columns: it is A
// if A is wide, else Aᵀ. Rotations G make its rows orthogonal:
//
//   G W = Σ Z,  W = Gᵀ Σ Z:  U = Gᵀ and Vᵀ = Z if A is wide, else U = Zᵀ and Vᵀ = G
//
// Two kinds of rows of Z are not determined: those with singular value 0, and the additional rows of square factors.
// They are computed as the last columns of the product of reflections that maps the other rows onto axes. Rows are kept
// in descending order of their norms.

#include <metal_stdlib>
using namespace metal;

#include "linalg/svd.h"

// - full: 1 or 0: whether U and V are square
#include "generated/svd.h"

typedef threadgroup float *SharedNumbers;
typedef device float *DeviceNumbers;

// Returns the exponent of the largest element, or NO_EXPONENT if an element is infinite or NaN.
#define NO_EXPONENT 1000
template <typename M> inline int exponent_of(M matrix, uint lane) {
    uint largest = 0;
    for (uint at = lane; at < matrix.small * matrix.large; at += LANES) {
        largest = max(largest, as_type<uint>(matrix.w[at]) & 0x7fffffffu);
    }
    largest = simd_max(largest);
    return largest >= 0x7f800000u ? NO_EXPONENT : int(largest >> 23) - 127;
}

template <typename M> inline void load(M matrix, device const float *a, Place place) {
    for (uint at = place.index; at < matrix.small * matrix.large; at += place.threads) {
        uint to = matrix.is_tall ? at % matrix.small * matrix.large + at / matrix.small : at;
        matrix.w[to] = a[at];
    }
    for (uint at = place.index; matrix.has_vectors && at < matrix.small * matrix.small; at += place.threads) {
        matrix.g[at] = at / matrix.small == at % matrix.small ? 1.0f : 0.0f;
    }
}

// Rotates until a sweep finds all pairs orthogonal. SIMD-groups report whether they rotated in the memory of the norms.
template <typename M> inline bool orthogonalise(M matrix, Place place) {
    uint pairs = (matrix.small + 1) / 2;
    uint rounds = 2 * pairs - 1;
    for (uint sweep = 0; sweep < SWEEPS; sweep++) {
        bool is_rotated = false;
        for (uint round = 0; round < rounds; round++) {
            for (uint at = place.group; at < pairs; at += place.groups) {
                uint2 pair = pair_of(at, round, rounds);
                if (pair.y < matrix.small) {
                    auto x = matrix.row(pair.x, place.lane);
                    auto y = matrix.row(pair.y, place.lane);
                    Rotation rotation = rotation_of(x, y);
                    rotate(x, y, rotation);
                    if (matrix.has_vectors) {
                        rotate(matrix.rotations(pair.x, place.lane), matrix.rotations(pair.y, place.lane), rotation);
                    }
                    is_rotated = is_rotated || rotation.is_needed;
                }
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
        if (place.lane == 0) {
            matrix.norms[place.group] = is_rotated ? 1.0f : 0.0f;
        }
        threadgroup_barrier(ROWS);
        bool is_other = place.group == 0 && place.lane < place.groups && matrix.norms[place.lane] != 0.0f;
        bool is_done = told(matrix, simd_any(is_other) ? 1.0f : 0.0f, place) == 0.0f;
        if (is_done) {
            return true;
        }
    }
    return false;
}

// Returns the value of `info`.
template <typename M> inline int factorize(M matrix, device const float *a, Place place) {
    load(matrix, a, place);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    int exponent = exponent_of(matrix, place.lane);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (exponent == NO_EXPONENT) {
        fill_with_nan(matrix, place);
        return NOT_FINITE;
    }
    for (uint at = place.index; at < matrix.small * matrix.large; at += place.threads) {
        matrix.w[at] = scaled(matrix.w[at], -exponent);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (matrix.small > 1 && !orthogonalise(matrix, place)) {
        fill_with_nan(matrix, place);
        return NOT_CONVERGED;
    }
    finish(matrix, exponent, place);
    return 0;
}

// a     [[buffer(0)]]  batch × rows × columns
// u     [[buffer(1)]]  batch × rows × min(rows, columns), or rows × rows; not written without vectors
// s     [[buffer(2)]]  batch × min(rows, columns)
// vh    [[buffer(3)]]  batch × min(rows, columns) × columns, or columns × columns; not written without vectors
// info  [[buffer(4)]]  batch: 0, or NOT_FINITE or NOT_CONVERGED, in which case the other results are NaN
// w      [[threadgroup(0)]]  rows × columns
// g      [[threadgroup(1)]]  min(rows, columns)², with vectors
// norms  [[threadgroup(2)]]  min(rows, columns) + 1, in `svd`
//
// `svd_without_norms` is for matrices that leave no threadgroup memory for norms. It keeps the norms in the buffer of
// the singular values, and the message in `info`.
#define SVD(name, numbers, norms_of, message_of, ...)                                                        \
    kernel void name(                                                                                        \
        device const float *a [[buffer(0)]], device float *u [[buffer(1)]], device float *s [[buffer(2)]],   \
        device float *vh [[buffer(3)]], device int *info [[buffer(4)]], constant Svd &problem [[buffer(5)]], \
        threadgroup float *w [[threadgroup(0)]], threadgroup float *g [[threadgroup(1)]],                    \
        __VA_ARGS__ PLACE_ARGUMENTS) {                                                                       \
        uint rows = uint(problem.rows);                                                                      \
        uint columns = uint(problem.columns);                                                                \
        bool is_full = problem.full != 0;                                                                    \
        Matrix<SharedNumbers, numbers> factors;                                                              \
        factors.small = min(rows, columns);                                                                  \
        factors.large = max(rows, columns);                                                                  \
        factors.count = is_full ? factors.large : factors.small;                                             \
        factors.is_tall = rows >= columns;                                                                   \
        factors.has_vectors = problem.vectors != 0;                                                          \
        factors.u = u + ulong(matrix) * rows * (is_full ? rows : factors.small);                             \
        factors.s = s + ulong(matrix) * factors.small;                                                       \
        factors.vh = vh + ulong(matrix) * columns * (is_full ? columns : factors.small);                     \
        factors.w = w;                                                                                       \
        factors.w_pitch = factors.large;                                                                     \
        factors.g = g;                                                                                       \
        factors.g_pitch = factors.small;                                                                     \
        factors.norms = norms_of;                                                                            \
        factors.message = message_of;                                                                        \
        Place place = Place{matrix, index, threads, group, groups, lane};                                    \
        int found = factorize(factors, a + ulong(matrix) * rows * columns, place);                           \
        if (index == 0) {                                                                                    \
            info[matrix] = found;                                                                            \
        }                                                                                                    \
    }

SVD(svd, SharedNumbers, norms, norms + factors.small, threadgroup float *norms [[threadgroup(2)]], )
SVD(svd_without_norms, DeviceNumbers, factors.s, (device float *)(info + matrix), )
