// The names of <simd/simd.h> for Metal's types and functions, for headers that host code and kernels share:
// simd::float4, simd_float4, vector_float4, simd_float4x4, matrix_float4x4, simd::length.
#ifndef MRT_SIMD_NAMES_H
#define MRT_SIMD_NAMES_H

#include "matrix.h"
#include "packed.h"

namespace simd {
#define MRT_SIMD_NAMESPACE(T) using metal::T##2, metal::T##3, metal::T##4;
#define MRT_FOR_SIMD_ELEMENTS(M)                                                                                       \
  M(bool) M(char) M(uchar) M(short) M(ushort) M(int) M(uint) M(long) M(ulong) M(half) M(float)
MRT_FOR_SIMD_ELEMENTS(MRT_SIMD_NAMESPACE)
MRT_FOR_MATRICES(MRT_MATRIX_GLOBAL_NAMES)
using namespace metal;
} // namespace simd

#define MRT_SIMD_VECTORS(T)                                                                                            \
  typedef metal::T##2 simd_##T##2, vector_##T##2;                                                                      \
  typedef metal::T##3 simd_##T##3, vector_##T##3;                                                                      \
  typedef metal::T##4 simd_##T##4, vector_##T##4;
MRT_FOR_SIMD_ELEMENTS(MRT_SIMD_VECTORS)

#define MRT_SIMD_MATRIX_NAMES(T, C)                                                                                    \
  typedef metal::T##C##x2 simd_##T##C##x2, matrix_##T##C##x2;                                                          \
  typedef metal::T##C##x3 simd_##T##C##x3, matrix_##T##C##x3;                                                          \
  typedef metal::T##C##x4 simd_##T##C##x4, matrix_##T##C##x4;
MRT_FOR_MATRICES(MRT_SIMD_MATRIX_NAMES)

#endif
