// A SIMD-group's matrices of 8 x 8 in registers, where each lane processes the elements that it holds.
//
// MSL does not specify which elements a lane holds. Apple's GPUs have one layout, which other libraries depend on too
// (MLX, `steel/gemm/mma.h`, 2024). On an NVIDIA GPU, Orchard's functions give the layout of its tensor cores.

#ifndef ORCHARD_COMMON_FRAGMENTS_H
#define ORCHARD_COMMON_FRAGMENTS_H

#include "common/matrix.h"
#include "common/unrolled.h"

#ifdef __HAVE_ORCHARD_FRAGMENTS__
using namespace orchard;
#else
struct fragment_place {
    ushort row;
    ushort column;
    ushort neighbors[2];
};

inline fragment_place place_of_lane(ushort lane) {
    const ushort quad = lane / 4;
    return {ushort((quad & 4) + lane / 2 % 4), ushort((quad & 2) * 2 + lane % 2 * 2), {1, 8}};
}

template <typename T> inline vec<T, 2> fragment_elements(simdgroup_matrix<T, 8, 8> matrix) {
    return vec<T, 2>(matrix.thread_elements()[0], matrix.thread_elements()[1]);
}

template <typename T> inline simdgroup_matrix<T, 8, 8> fragment_of(vec<T, 2> elements) {
    simdgroup_matrix<T, 8, 8> matrix;
    matrix.thread_elements()[0] = elements.x;
    matrix.thread_elements()[1] = elements.y;
    return matrix;
}

template <typename T> inline simdgroup_matrix<T, 8, 8> rounded_fragment(float2 elements) {
    return fragment_of(vec<T, 2>(T(elements.x), T(elements.y)));
}

inline float flushed_exp2(float x) { return fast::exp2(x); }

template <typename T>
inline void fragment_load(
    thread simdgroup_matrix<T, 8, 8> &first,
    thread simdgroup_matrix<T, 8, 8> &second,
    threadgroup const T *source,
    threadgroup const T *next,
    ulong pitch,
    bool transpose) {
    simdgroup_load(first, source, pitch, ulong2(0), transpose);
    simdgroup_load(second, next, pitch, ulong2(0), transpose);
}

template <typename T>
inline void fragment_load_left(
    thread simdgroup_matrix<T, 8, 8> &first,
    thread simdgroup_matrix<T, 8, 8> &second,
    threadgroup const T *source,
    threadgroup const T *next,
    ulong pitch,
    bool transpose) {
    fragment_load(first, second, source, next, pitch, transpose);
}

template <typename T>
inline void fragment_multiply_accumulate(
    thread Sums &upper,
    thread Sums &lower,
    simdgroup_matrix<T, 8, 8> a0,
    simdgroup_matrix<T, 8, 8> a1,
    simdgroup_matrix<T, 8, 8> a2,
    simdgroup_matrix<T, 8, 8> a3,
    simdgroup_matrix<T, 8, 8> b0,
    simdgroup_matrix<T, 8, 8> b1) {
    simdgroup_multiply_accumulate(upper, a0, b0, upper);
    simdgroup_multiply_accumulate(upper, a2, b1, upper);
    simdgroup_multiply_accumulate(lower, a1, b0, lower);
    simdgroup_multiply_accumulate(lower, a3, b1, lower);
}
#endif

// Rows of a SIMD-group's products: two rows of matrices.
constant constexpr int TALL_ROWS = 16;

#endif
