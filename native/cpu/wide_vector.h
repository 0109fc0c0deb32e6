// Vectors of float64 made from, and rounded to, adjacent floats. GCC converts a vector of float32 to one of twice its
// bytes in two halves, which takes several times as long as the one instruction of AVX-512.
#pragma once

#include "matmul/simd.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace orchard::ORCHARD_ISA {

inline Vector<double> load_wide(const double *from) { return load_vector(from); }

inline Vector<double> load_wide(const float *from) {
#if defined(__AVX512F__)
  return Vector<double>(_mm512_cvtps_pd(_mm256_loadu_ps(from)));
#else
  typedef float Half __attribute__((vector_size(lanes<double> * sizeof(float))));
  Half half;
  __builtin_memcpy(&half, from, sizeof half);
  return __builtin_convertvector(half, Vector<double>);
#endif
}

inline void store_narrow(Vector<double> vector, double *to) { store_vector(vector, to); }

inline void store_narrow(Vector<double> vector, float *to) {
#if defined(__AVX512F__)
  _mm256_storeu_ps(to, _mm512_cvtpd_ps(__m512d(vector)));
#else
  typedef float Half __attribute__((vector_size(lanes<double> * sizeof(float))));
  const Half half = __builtin_convertvector(vector, Half);
  __builtin_memcpy(to, &half, sizeof half);
#endif
}

} // namespace orchard::ORCHARD_ISA
