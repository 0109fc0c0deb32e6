// Apple's vectors and matrices for C, C++ and the C headers that Swift and Metal share: clang's own vectors, which
// Swift imports as SIMD2<Float> and the like.
#ifndef ORCHARD_SIMD_H
#define ORCHARD_SIMD_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

// Functions are overloaded in C as in C++. They are hidden from Swift, whose module `simd` defines the same functions.
#define ORCHARD_SIMD_FUNCTION                                                                                          \
  static inline __attribute__((__overloadable__, __unused__, __availability__(swift, unavailable)))

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
  typedef scalar simd_packed_##name##4 __attribute__((__ext_vector_type__(4), __aligned__(sizeof(scalar))));

// The overloads of `simd_make_float4`.
#define ORCHARD_SIMD_MAKERS(name, scalar)                                                                              \
  ORCHARD_SIMD_FUNCTION simd_##name##2 simd_make_##name##2(scalar x, scalar y) { return (simd_##name##2){x, y}; }      \
  ORCHARD_SIMD_FUNCTION simd_##name##2 simd_make_##name##2(simd_##name##2 v) { return (simd_##name##2){v.x, v.y}; }    \
  ORCHARD_SIMD_FUNCTION simd_##name##2 simd_make_##name##2(simd_##name##3 v) { return (simd_##name##2){v.x, v.y}; }    \
  ORCHARD_SIMD_FUNCTION simd_##name##2 simd_make_##name##2(simd_##name##4 v) { return (simd_##name##2){v.x, v.y}; }    \
  ORCHARD_SIMD_FUNCTION simd_##name##3 simd_make_##name##3(scalar x, scalar y, scalar z) {                             \
    return (simd_##name##3){x, y, z};                                                                                  \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION simd_##name##3 simd_make_##name##3(simd_##name##2 v) { return (simd_##name##3){v.x, v.y, 0}; } \
  ORCHARD_SIMD_FUNCTION simd_##name##3 simd_make_##name##3(simd_##name##3 v) {                                         \
    return (simd_##name##3){v.x, v.y, v.z};                                                                            \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION simd_##name##3 simd_make_##name##3(simd_##name##4 v) {                                         \
    return (simd_##name##3){v.x, v.y, v.z};                                                                            \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION simd_##name##3 simd_make_##name##3(simd_##name##2 v, scalar z) {                               \
    return (simd_##name##3){v.x, v.y, z};                                                                              \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION simd_##name##3 simd_make_##name##3(scalar x, simd_##name##2 v) {                               \
    return (simd_##name##3){x, v.x, v.y};                                                                              \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION simd_##name##4 simd_make_##name##4(scalar x, scalar y, scalar z, scalar w) {                   \
    return (simd_##name##4){x, y, z, w};                                                                               \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION simd_##name##4 simd_make_##name##4(simd_##name##2 v) {                                         \
    return (simd_##name##4){v.x, v.y, 0, 0};                                                                           \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION simd_##name##4 simd_make_##name##4(simd_##name##3 v) {                                         \
    return (simd_##name##4){v.x, v.y, v.z, 0};                                                                         \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION simd_##name##4 simd_make_##name##4(simd_##name##4 v) {                                         \
    return (simd_##name##4){v.x, v.y, v.z, v.w};                                                                       \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION simd_##name##4 simd_make_##name##4(simd_##name##3 v, scalar w) {                               \
    return (simd_##name##4){v.x, v.y, v.z, w};                                                                         \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION simd_##name##4 simd_make_##name##4(scalar x, simd_##name##3 v) {                               \
    return (simd_##name##4){x, v.x, v.y, v.z};                                                                         \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION simd_##name##4 simd_make_##name##4(simd_##name##2 a, simd_##name##2 b) {                       \
    return (simd_##name##4){a.x, a.y, b.x, b.y};                                                                       \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION simd_##name##4 simd_make_##name##4(simd_##name##2 v, scalar z, scalar w) {                     \
    return (simd_##name##4){v.x, v.y, z, w};                                                                           \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION simd_##name##4 simd_make_##name##4(scalar x, simd_##name##2 v, scalar w) {                     \
    return (simd_##name##4){x, v.x, v.y, w};                                                                           \
  }                                                                                                                    \
  ORCHARD_SIMD_FUNCTION simd_##name##4 simd_make_##name##4(scalar x, scalar y, simd_##name##2 v) {                     \
    return (simd_##name##4){x, y, v.x, v.y};                                                                           \
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
ORCHARD_SIMD_MAKERS(char, signed char)
ORCHARD_SIMD_MAKERS(uchar, unsigned char)
ORCHARD_SIMD_MAKERS(short, short)
ORCHARD_SIMD_MAKERS(ushort, unsigned short)
ORCHARD_SIMD_MAKERS(int, int)
ORCHARD_SIMD_MAKERS(uint, unsigned int)
ORCHARD_SIMD_MAKERS(long, long)
ORCHARD_SIMD_MAKERS(ulong, unsigned long)
ORCHARD_SIMD_MAKERS(float, float)
ORCHARD_SIMD_MAKERS(double, double)

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

#include "functions.h"

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
