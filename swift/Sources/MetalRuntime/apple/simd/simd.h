// Apple's vectors and matrices for C, C++ and the C headers that Swift and Metal share: clang's own vectors, which
// Swift imports as SIMD2<Float> and the like.
#ifndef ORCHARD_SIMD_H
#define ORCHARD_SIMD_H

#include <math.h>
#include <stdbool.h>

#define ORCHARD_SIMD_VECTORS(name, scalar)                                                                             \
  typedef scalar simd_##name##1;                                                                                       \
  typedef scalar simd_##name##2 __attribute__((__ext_vector_type__(2)));                                               \
  typedef scalar simd_##name##3 __attribute__((__ext_vector_type__(3)));                                               \
  typedef scalar simd_##name##4 __attribute__((__ext_vector_type__(4)));                                               \
  typedef scalar simd_##name##8 __attribute__((__ext_vector_type__(8)));                                               \
  typedef simd_##name##2 vector_##name##2;                                                                             \
  typedef simd_##name##3 vector_##name##3;                                                                             \
  typedef simd_##name##4 vector_##name##4;                                                                             \
  typedef simd_##name##8 vector_##name##8;                                                                             \
  typedef scalar simd_packed_##name##2 __attribute__((__ext_vector_type__(2), __aligned__(sizeof(scalar))));           \
  typedef scalar simd_packed_##name##4 __attribute__((__ext_vector_type__(4), __aligned__(sizeof(scalar))));           \
  static inline simd_##name##2 simd_make_##name##2(scalar x, scalar y) { return (simd_##name##2){x, y}; }              \
  static inline simd_##name##3 simd_make_##name##3(scalar x, scalar y, scalar z) { return (simd_##name##3){x, y, z}; } \
  static inline simd_##name##4 simd_make_##name##4(scalar x, scalar y, scalar z, scalar w) {                           \
    return (simd_##name##4){x, y, z, w};                                                                               \
  }

ORCHARD_SIMD_VECTORS(char, signed char)
ORCHARD_SIMD_VECTORS(uchar, unsigned char)
ORCHARD_SIMD_VECTORS(short, short)
ORCHARD_SIMD_VECTORS(ushort, unsigned short)
ORCHARD_SIMD_VECTORS(int, int)
ORCHARD_SIMD_VECTORS(uint, unsigned int)
ORCHARD_SIMD_VECTORS(long, long)
ORCHARD_SIMD_VECTORS(ulong, unsigned long)
ORCHARD_SIMD_VECTORS(float, float)
ORCHARD_SIMD_VECTORS(double, double)

// The columns of a matrix, as in Metal.
#define ORCHARD_SIMD_MATRIX(name, columns_, rows)                                                                      \
  typedef struct {                                                                                                     \
    simd_##name##rows columns[columns_];                                                                               \
  } simd_##name##columns_##x##rows;                                                                                    \
  typedef simd_##name##columns_##x##rows matrix_##name##columns_##x##rows;
#define ORCHARD_SIMD_MATRICES(name)                                                                                    \
  ORCHARD_SIMD_MATRIX(name, 2, 2)                                                                                      \
  ORCHARD_SIMD_MATRIX(name, 2, 3)                                                                                      \
  ORCHARD_SIMD_MATRIX(name, 2, 4)                                                                                      \
  ORCHARD_SIMD_MATRIX(name, 3, 2)                                                                                      \
  ORCHARD_SIMD_MATRIX(name, 3, 3)                                                                                      \
  ORCHARD_SIMD_MATRIX(name, 3, 4)                                                                                      \
  ORCHARD_SIMD_MATRIX(name, 4, 2)                                                                                      \
  ORCHARD_SIMD_MATRIX(name, 4, 3)                                                                                      \
  ORCHARD_SIMD_MATRIX(name, 4, 4)
ORCHARD_SIMD_MATRICES(float)
ORCHARD_SIMD_MATRICES(double)

// Defines a function for each type, in C as in C++: `simd_dot(a, b)`.
#define ORCHARD_SIMD_FUNCTION static inline __attribute__((__overloadable__, __const__))
#define ORCHARD_SIMD_FUNCTIONS(vector, scalar, sum, root)                                                              \
  ORCHARD_SIMD_FUNCTION scalar simd_reduce_add(vector v) { return sum; }                                               \
  ORCHARD_SIMD_FUNCTION scalar simd_dot(vector a, vector b) { return simd_reduce_add(a * b); }                         \
  ORCHARD_SIMD_FUNCTION scalar simd_length_squared(vector v) { return simd_dot(v, v); }                                \
  ORCHARD_SIMD_FUNCTION scalar simd_length(vector v) { return root(simd_dot(v, v)); }                                  \
  ORCHARD_SIMD_FUNCTION scalar simd_distance(vector a, vector b) { return simd_length(a - b); }                        \
  ORCHARD_SIMD_FUNCTION vector simd_normalize(vector v) { return v / simd_length(v); }
ORCHARD_SIMD_FUNCTIONS(simd_float2, float, v.x + v.y, sqrtf)
ORCHARD_SIMD_FUNCTIONS(simd_float3, float, v.x + v.y + v.z, sqrtf)
ORCHARD_SIMD_FUNCTIONS(simd_float4, float, v.x + v.y + v.z + v.w, sqrtf)
ORCHARD_SIMD_FUNCTIONS(simd_double2, double, v.x + v.y, sqrt)
ORCHARD_SIMD_FUNCTIONS(simd_double3, double, v.x + v.y + v.z, sqrt)
ORCHARD_SIMD_FUNCTIONS(simd_double4, double, v.x + v.y + v.z + v.w, sqrt)

ORCHARD_SIMD_FUNCTION simd_float3 simd_cross(simd_float3 a, simd_float3 b) { return a.yzx * b.zxy - a.zxy * b.yzx; }
ORCHARD_SIMD_FUNCTION simd_double3 simd_cross(simd_double3 a, simd_double3 b) { return a.yzx * b.zxy - a.zxy * b.yzx; }
ORCHARD_SIMD_FUNCTION simd_float4 simd_mul(simd_float4x4 m, simd_float4 v) {
  return m.columns[0] * v.x + m.columns[1] * v.y + m.columns[2] * v.z + m.columns[3] * v.w;
}
ORCHARD_SIMD_FUNCTION simd_float4x4 simd_mul(simd_float4x4 a, simd_float4x4 b) {
  simd_float4x4 product;
  for (int i = 0; i < 4; i++) product.columns[i] = simd_mul(a, b.columns[i]);
  return product;
}

#ifdef __cplusplus
// `simd::float4`, as in Metal.
namespace simd {
#define ORCHARD_SIMD_NAMES(name)                                                                                       \
  typedef ::simd_##name##2 name##2;                                                                                    \
  typedef ::simd_##name##3 name##3;                                                                                    \
  typedef ::simd_##name##4 name##4;
ORCHARD_SIMD_NAMES(char)
ORCHARD_SIMD_NAMES(uchar)
ORCHARD_SIMD_NAMES(short)
ORCHARD_SIMD_NAMES(ushort)
ORCHARD_SIMD_NAMES(int)
ORCHARD_SIMD_NAMES(uint)
ORCHARD_SIMD_NAMES(long)
ORCHARD_SIMD_NAMES(ulong)
ORCHARD_SIMD_NAMES(float)
ORCHARD_SIMD_NAMES(double)
typedef ::simd_float2x2 float2x2;
typedef ::simd_float3x3 float3x3;
typedef ::simd_float4x4 float4x4;
typedef ::simd_double4x4 double4x4;
} // namespace simd
#endif

#endif
