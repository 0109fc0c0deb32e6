// Orchard's additions to simdgroup_matrix, which a program may use if __HAVE_ORCHARD_FRAGMENTS__ is defined. The
// device's layout determines a lane's two elements: Apple's layout on the software device, and the tensor cores' layout
// on an NVIDIA GPU (gpu/matrix.h), so that no element moves to another lane.
#ifndef MRT_FRAGMENTS_H
#define MRT_FRAGMENTS_H

#include "simdgroup_matrix.h"

namespace orchard {

using metal::simdgroup_matrix, metal::vec, metal::ulong2;

// The position of a lane's first element; the second is in the next column. `neighbors` has two masks: the lanes whose
// numbers differ from this lane's in these bits have the other elements of the row.
struct fragment_place {
  ushort row, column;
  ushort neighbors[2];
};

#ifdef MRT_STRICT
fragment_place place_of_lane(ushort lane);
template <typename T> vec<T, 2> fragment_elements(simdgroup_matrix<T, 8, 8> matrix);
template <typename T> simdgroup_matrix<T, 8, 8> fragment_of(vec<T, 2> elements);
template <typename T> simdgroup_matrix<T, 8, 8> rounded_fragment(vec<float, 2> elements);
float flushed_exp2(float x);
template <typename T>
void fragment_load(simdgroup_matrix<T, 8, 8> &first, simdgroup_matrix<T, 8, 8> &second, const MRT_THREADGROUP T *source,
                   const MRT_THREADGROUP T *next, ulong elements_per_row, bool transpose_matrix);
template <typename T>
void fragment_load_left(simdgroup_matrix<T, 8, 8> &first, simdgroup_matrix<T, 8, 8> &second,
                        const MRT_THREADGROUP T *source, const MRT_THREADGROUP T *next, ulong elements_per_row,
                        bool transpose_matrix);
template <typename T>
void fragment_multiply_accumulate(simdgroup_matrix<float, 8, 8> &upper, simdgroup_matrix<float, 8, 8> &lower,
                                  simdgroup_matrix<T, 8, 8> a0, simdgroup_matrix<T, 8, 8> a1,
                                  simdgroup_matrix<T, 8, 8> a2, simdgroup_matrix<T, 8, 8> a3,
                                  simdgroup_matrix<T, 8, 8> b0, simdgroup_matrix<T, 8, 8> b1);
#else

MRT_FUNC fragment_place place_of_lane(ushort lane) {
#ifdef MRT_GPU
  const mrt::MatrixPosition position = mrt::native_position(lane);
  return {ushort(position.row), ushort(position.column), {1, 2}};
#else
  const mrt::MatrixPosition position = mrt::matrix_position(lane);
  return {ushort(position.row), ushort(position.column), {1, 8}};
#endif
}

template <typename T> MRT_FUNC vec<T, 2> fragment_elements(simdgroup_matrix<T, 8, 8> matrix) {
#ifdef MRT_GPU
  const vec<T, 64> pair = matrix.elements.native();
#else
  const vec<T, 64> pair = matrix.elements.pair;
#endif
  return vec<T, 2>(pair.own[0], pair.own[1]);
}

template <typename T> MRT_FUNC simdgroup_matrix<T, 8, 8> fragment_of(vec<T, 2> elements) {
  simdgroup_matrix<T, 8, 8> matrix;
  matrix.elements = mrt::lane_elements<T>({{elements.x, elements.y}});
  return matrix;
}

// A matrix of elements that are rounded to T.
template <typename T> MRT_FUNC simdgroup_matrix<T, 8, 8> rounded_fragment(vec<float, 2> elements) {
#ifdef MRT_GPU
  if constexpr (__is_same(T, bfloat)) {
    const uint word = mrt::rounded_pair(elements.x, elements.y);
    simdgroup_matrix<T, 8, 8> matrix;
    matrix.elements = mrt::lane_elements<T>(__builtin_bit_cast(vec<T, 64>, word));
    return matrix;
  }
#endif
  return fragment_of(vec<T, 2>(T(elements.x), T(elements.y)));
}

// 2^x, as fast::exp2 gives it, except that on an NVIDIA GPU subnormal results are 0 (PTX ISA, ex2.approx.ftz).
MRT_FUNC float flushed_exp2(float x) {
#ifdef MRT_GPU
  float power;
  __asm__("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
#else
  return metal::fast::exp2(x);
#endif
}

// Loads two matrices that will be right factors. Both addresses and the pitch must be multiples of 16 bytes.
template <typename T>
MRT_COOPERATIVE void fragment_load(simdgroup_matrix<T, 8, 8> &first, simdgroup_matrix<T, 8, 8> &second,
                                   const MRT_THREADGROUP T *source, const MRT_THREADGROUP T *next,
                                   ulong elements_per_row, bool transpose_matrix MRT_SITE) {
#ifdef MRT_GPU
  mrt::load_right_factors<T>(first.elements, second.elements, source, next, elements_per_row, transpose_matrix);
#else
  metal::simdgroup_load(first, source, elements_per_row, ulong2(0), transpose_matrix, site);
  metal::simdgroup_load(second, next, elements_per_row, ulong2(0), transpose_matrix, site);
#endif
}

// The same for left factors. A lane holds the elements of a left factor that it holds of a right one's transpose.
template <typename T>
MRT_COOPERATIVE void fragment_load_left(simdgroup_matrix<T, 8, 8> &first, simdgroup_matrix<T, 8, 8> &second,
                                        const MRT_THREADGROUP T *source, const MRT_THREADGROUP T *next,
                                        ulong elements_per_row, bool transpose_matrix MRT_SITE) {
#ifdef MRT_GPU
  mrt::load_right_factors<T>(first.elements, second.elements, source, next, elements_per_row, !transpose_matrix);
  first.elements.layout = second.elements.layout = mrt::native_layout;
#else
  fragment_load(first, second, source, next, elements_per_row, transpose_matrix, site);
#endif
}

// upper += a0 b0 + a2 b1, lower += a1 b0 + a3 b1.
template <typename T>
MRT_COOPERATIVE void fragment_multiply_accumulate(simdgroup_matrix<float, 8, 8> &upper,
                                                  simdgroup_matrix<float, 8, 8> &lower, simdgroup_matrix<T, 8, 8> a0,
                                                  simdgroup_matrix<T, 8, 8> a1, simdgroup_matrix<T, 8, 8> a2,
                                                  simdgroup_matrix<T, 8, 8> a3, simdgroup_matrix<T, 8, 8> b0,
                                                  simdgroup_matrix<T, 8, 8> b1 MRT_SITE) {
#ifdef MRT_GPU
  mrt::add_tall_product(upper.elements, lower.elements, a0.elements, a1.elements, a2.elements, a3.elements, b0.elements,
                        b1.elements);
#else
  metal::simdgroup_multiply_accumulate(upper, a0, b0, upper, site);
  metal::simdgroup_multiply_accumulate(upper, a2, b1, upper, site);
  metal::simdgroup_multiply_accumulate(lower, a1, b0, lower, site);
  metal::simdgroup_multiply_accumulate(lower, a3, b1, lower, site);
#endif
}

#endif
} // namespace orchard

#endif
