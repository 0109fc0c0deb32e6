// Eigenvalues and eigenvectors of symmetric matrices by Jacobi's method, one threadgroup per matrix:
//
//     V = 1
//     sweep until all elements off the diagonal are negligible:
//         for each of m - 1 steps, in which the m rows are paired as in a round-robin tournament:
//             a thread for each pair (p, q): the rotation J that makes A[p, q] 0
//             all threads: A = Jᵀ A J, in blocks of 2 × 2 for two pairs each; V = V J
//     sort
//
// m is the size, rounded up to even by a row of zeros. Negligible means small relative to the two diagonal elements,
// not to the norm, so eigenvalues of positive definite matrices have full relative accuracy if the matrix determines
// them that well (J. Demmel and K. Veselić, "Jacobi's method is more accurate than QR", 1992). Source of the order of
// the pairs: R. Brent and F. Luk, "The solution of singular-value and symmetric eigenvalue problems on multiprocessor
// arrays", 1985.
//
// Threadgroup memory contains one triangle of A, row after row, and the transpose of V: 25 KB for 64 rows.

#include <metal_stdlib>
using namespace metal;

#include "generated/eigh.h"
#include "linalg/eigh.h"

#define MAX_SWEEPS 40

// Loads a matrix divided by a power of two, which `scale` receives, and sets V = 1. Returns the first row with an
// element that is not finite, or the size.
template <uint ROWS, bool VECTORS>
inline uint load(device const float *a, uint size, bool upper, Place place, Held held, thread float &scale) {
    float largest = 0.0f;
    uint refused = size;
    for (uint at = place.thread_index; at < size * size; at += place.threads) {
        uint i = at / size;
        uint j = at % size;
        if (upper ? j >= i : j <= i) {
            float value = a[at];
            bool is_finite = (as_type<uint>(value) & 0x7f800000u) != 0x7f800000u;
            refused = is_finite ? refused : min(refused, min(i, j));
            largest = is_finite ? max(largest, fabs(value)) : largest;
            held.elements[packed(i, j)] = value;
        }
    }
    largest = simd_max(largest);
    refused = simd_min(refused);
    if (place.lane == 0) {
        held.largest[place.simdgroup] = largest;
        held.refused[place.simdgroup] = refused;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint group = 0; group < place.threads / 32; group++) {
        largest = max(largest, held.largest[group]);
        refused = min(refused, held.refused[group]);
    }
    int exponent = clamp(int(as_type<uint>(largest) >> 23) - 127, -126, 126);
    scale = power_of_two(exponent);
    float factor = power_of_two(-exponent);
    for (uint at = place.thread_index; at < size * size; at += place.threads) {
        uint i = at / size;
        uint j = at % size;
        if (upper ? j >= i : j <= i) {
            held.elements[packed(i, j)] *= factor;
        }
    }
    uint count = size + size % 2;
    if (size % 2 == 1) {
        for (uint j = place.thread_index; j < count; j += place.threads) {
            held.elements[packed(size, j)] = 0.0f;
        }
    }
    if (VECTORS) {
        for (uint at = place.thread_index; at < count * ROWS; at += place.threads) {
            held.vectors[at / ROWS * (ROWS + 1) + at % ROWS] = at / ROWS == at % ROWS ? 1.0f : 0.0f;
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return refused;
}

// Sweeps until a sweep makes no rotation. Returns false if MAX_SWEEPS sweeps were not enough.
template <uint ROWS, bool VECTORS> inline bool diagonalise(uint size, Place place, Held held) {
    for (uint sweep = 0; sweep < MAX_SWEEPS; sweep++) {
        if (!is_changed_by_sweep<ROWS, VECTORS>(size, 7.88860905e-31f, place, held)) {  // 2^-100
            return true;
        }
    }
    return false;
}

// Sorts the eigenvalues, determines the signs of the eigenvectors, and writes both.
template <uint ROWS, bool VECTORS>
inline void store(
    device float *eigenvalues, device float *eigenvectors, uint size, float scale, Place place, Held held) {
    for (uint i = place.thread_index; i < size; i += place.threads) {
        float eigenvalue = held.elements[packed(i, i)];
        uint rank = 0;
        for (uint j = 0; j < size; j++) {
            float other = held.elements[packed(j, j)];
            rank += other < eigenvalue || (other == eigenvalue && j < i) ? 1 : 0;
        }
        eigenvalues[rank] = eigenvalue * scale;
        held.order[rank] = i;
        if (VECTORS) {
            held.largest[i] = sign_of(held.vectors + i * (ROWS + 1), size);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (VECTORS) {
        for (uint at = place.thread_index; at < size * size; at += place.threads) {
            uint from = held.order[at % size];
            eigenvectors[at] = held.vectors[from * (ROWS + 1) + at / size] * held.largest[from];
        }
    }
}

template <uint ROWS, bool VECTORS>
inline void decompose(
    device const float *a,
    device float *eigenvalues,
    device int *info,
    device float *eigenvectors,
    constant Eigh &problem,
    uint matrix,
    Place place,
    Held held) {
    uint size = uint(problem.size);
    device float *values = eigenvalues + long(matrix) * size;
    device float *vectors = eigenvectors + (VECTORS ? long(matrix) * size * size : 0);
    float scale;
    uint refused = load<ROWS, VECTORS>(a + long(matrix) * size * size, size, problem.upper != 0, place, held, scale);
    bool is_finite = refused == size;
    if (is_finite && diagonalise<ROWS, VECTORS>(size, place, held)) {
        store<ROWS, VECTORS>(values, vectors, size, scale, place, held);
        if (place.thread_index == 0) {
            info[matrix] = 0;
        }
        return;
    }
    if (place.thread_index == 0) {
        info[matrix] = int(refused) + 1;
    }
    float nan = as_type<float>(0x7fc00000u);
    for (uint at = place.thread_index; at < size; at += place.threads) {
        values[at] = nan;
    }
    if (VECTORS) {
        for (uint at = place.thread_index; at < size * size; at += place.threads) {
            vectors[at] = nan;
        }
    }
}

#define THREAD_ARGUMENTS                                                                             \
    uint matrix [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]], \
        uint threads [[threads_per_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]], \
        uint lane [[thread_index_in_simdgroup]]

#define DECOMPOSE(ROWS, VECTORS, eigenvectors)                                                              \
    threadgroup float elements[ROWS * (ROWS + 1) / 2];                                                      \
    threadgroup float vectors[VECTORS ? ROWS * (ROWS + 1) : 1];                                             \
    threadgroup Rotation rotations[ROWS / 2];                                                               \
    threadgroup uint2 pairs[ROWS / 2];                                                                      \
    threadgroup float largest[ROWS];                                                                        \
    threadgroup uint refused[MAX_SIMDGROUPS + 1];                                                           \
    threadgroup uint order[ROWS];                                                                           \
    decompose<ROWS, VECTORS>(                                                                               \
        a, eigenvalues, info, eigenvectors, problem, matrix, Place{thread_index, threads, simdgroup, lane}, \
        Held{elements, vectors, rotations, pairs, largest, refused, order})

// a             [[buffer(0)]]  batch × size × size; one triangle is read
// eigenvalues   [[buffer(1)]]  batch × size, ascending
// info          [[buffer(2)]]  batch: 0 for success; the first row with an element that is not finite, counted from 1;
//                              or size + 1 without convergence
// eigenvectors  [[buffer(3)]]  batch × size × size, in columns; absent for eigvalsh
#define KERNELS(ROWS)                                                                                                 \
    kernel void eigh_##ROWS(                                                                                          \
        device const float *a [[buffer(0)]], device float *eigenvalues [[buffer(1)]], device int *info [[buffer(2)]], \
        device float *eigenvectors [[buffer(3)]], constant Eigh &problem [[buffer(4)]], THREAD_ARGUMENTS) {           \
        DECOMPOSE(ROWS, true, eigenvectors);                                                                          \
    }                                                                                                                 \
    kernel void eigvalsh_##ROWS(                                                                                      \
        device const float *a [[buffer(0)]], device float *eigenvalues [[buffer(1)]], device int *info [[buffer(2)]], \
        constant Eigh &problem [[buffer(3)]], THREAD_ARGUMENTS) {                                                     \
        DECOMPOSE(ROWS, false, eigenvalues);                                                                          \
    }

KERNELS(8)
KERNELS(16)
KERNELS(32)
KERNELS(64)
