// Vectors of the instruction set's full width, and fused multiply-add on them.
#pragma once

#include "../isa.h"

#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace orchard::ORCHARD_ISA {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

template <class T> struct VectorOf {
  typedef T type __attribute__((vector_size(vector_bytes)));
};
template <class T> using Vector = typename VectorOf<T>::type;
template <class T> constexpr int lanes = vector_bytes / int(sizeof(T));

// Loads a vector from an address that is aligned for T.
template <class T> inline Vector<T> load_vector(const T *from) {
  Vector<T> vector;
  __builtin_memcpy(&vector, from, sizeof vector);
  return vector;
}
template <class T> inline void store_vector(Vector<T> vector, T *to) { __builtin_memcpy(to, &vector, sizeof vector); }

// sum + vector * factor, where the factor is a number or a vector. Floats are rounded once if the instruction set has
// fused multiply-add; integers wrap around.
template <class T> inline Vector<T> multiply_add(Vector<T> vector, T factor, Vector<T> sum) {
  return sum + vector * factor;
}
template <class T> inline Vector<T> multiply_add(Vector<T> vector, Vector<T> factor, Vector<T> sum) {
  return sum + vector * factor;
}

#if defined(__AVX512F__)
template <> inline Vector<float> multiply_add<float>(Vector<float> vector, float factor, Vector<float> sum) {
  return _mm512_fmadd_ps(vector, _mm512_set1_ps(factor), sum);
}
template <> inline Vector<double> multiply_add<double>(Vector<double> vector, double factor, Vector<double> sum) {
  return _mm512_fmadd_pd(vector, _mm512_set1_pd(factor), sum);
}
template <> inline Vector<float> multiply_add<float>(Vector<float> vector, Vector<float> factor, Vector<float> sum) {
  return _mm512_fmadd_ps(vector, factor, sum);
}
template <>
inline Vector<double> multiply_add<double>(Vector<double> vector, Vector<double> factor, Vector<double> sum) {
  return _mm512_fmadd_pd(vector, factor, sum);
}
#elif defined(__FMA__)
template <> inline Vector<float> multiply_add<float>(Vector<float> vector, float factor, Vector<float> sum) {
  return _mm256_fmadd_ps(vector, _mm256_set1_ps(factor), sum);
}
template <> inline Vector<double> multiply_add<double>(Vector<double> vector, double factor, Vector<double> sum) {
  return _mm256_fmadd_pd(vector, _mm256_set1_pd(factor), sum);
}
template <> inline Vector<float> multiply_add<float>(Vector<float> vector, Vector<float> factor, Vector<float> sum) {
  return _mm256_fmadd_ps(vector, factor, sum);
}
template <>
inline Vector<double> multiply_add<double>(Vector<double> vector, Vector<double> factor, Vector<double> sum) {
  return _mm256_fmadd_pd(vector, factor, sum);
}
#elif defined(__aarch64__)
template <> inline Vector<float> multiply_add<float>(Vector<float> vector, float factor, Vector<float> sum) {
  return vfmaq_n_f32(sum, vector, factor);
}
template <> inline Vector<double> multiply_add<double>(Vector<double> vector, double factor, Vector<double> sum) {
  return vfmaq_n_f64(sum, vector, factor);
}
template <> inline Vector<float> multiply_add<float>(Vector<float> vector, Vector<float> factor, Vector<float> sum) {
  return vfmaq_f32(sum, vector, factor);
}
template <>
inline Vector<double> multiply_add<double>(Vector<double> vector, Vector<double> factor, Vector<double> sum) {
  return vfmaq_f64(sum, vector, factor);
}
#endif

} // namespace orchard::ORCHARD_ISA
