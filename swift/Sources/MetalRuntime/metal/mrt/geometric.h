// Geometric functions (MSL 6.9) for vectors of float and half. Sums are added from the first component to the last.
#ifndef MRT_GEOMETRIC_H
#define MRT_GEOMETRIC_H

#include "common.h"

namespace metal {

#define MRT_GEOMETRIC_FORM(FORM)                                                                                       \
  namespace FORM {                                                                                                     \
  template <typename A, typename B, typename V = mrt::float_vector<A, B>>                                              \
  MRT_FUNC typename V::value_type dot(A first, B second) {                                                             \
    const V a(first), b(second);                                                                                       \
    typename V::value_type sum = a.x * b.x + a.y * b.y;                                                                \
    if constexpr (mrt::shape<V>::count > 2) sum = sum + a.z * b.z;                                                     \
    if constexpr (mrt::shape<V>::count > 3) sum = sum + a.w * b.w;                                                     \
    return sum;                                                                                                        \
  }                                                                                                                    \
  template <typename A, typename B, typename V = mrt::float_vector<A, B>> MRT_FUNC V cross(A first, B second) {        \
    const V a(first), b(second);                                                                                       \
    return V(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);                                     \
  }                                                                                                                    \
  template <typename A, typename V = mrt::float_vector<A>> MRT_FUNC typename V::value_type length_squared(A v) {       \
    return FORM::dot(v, v);                                                                                            \
  }                                                                                                                    \
  template <typename A, typename V = mrt::float_vector<A>> MRT_FUNC typename V::value_type length(A v) {               \
    return sqrt(FORM::dot(v, v));                                                                                      \
  }                                                                                                                    \
  template <typename A, typename B, typename V = mrt::float_vector<A, B>>                                              \
  MRT_FUNC typename V::value_type distance_squared(A a, B b) {                                                         \
    return FORM::length_squared(V(a) - V(b));                                                                          \
  }                                                                                                                    \
  template <typename A, typename B, typename V = mrt::float_vector<A, B>>                                              \
  MRT_FUNC typename V::value_type distance(A a, B b) {                                                                 \
    return FORM::length(V(a) - V(b));                                                                                  \
  }                                                                                                                    \
  template <typename A, typename V = mrt::float_vector<A>> MRT_FUNC V normalize(A v) {                                 \
    return V(v) * rsqrt(FORM::dot(v, v));                                                                              \
  }                                                                                                                    \
  template <typename A, typename B, typename C, typename V = mrt::float_vector<A, B, C>>                               \
  MRT_FUNC V faceforward(A n, B incident, C reference) {                                                               \
    return FORM::dot(V(incident), V(reference)) < typename V::value_type(0) ? V(n) : -V(n);                            \
  }                                                                                                                    \
  template <typename A, typename B, typename V = mrt::float_vector<A, B>> MRT_FUNC V reflect(A first, B second) {      \
    const V incident(first), n(second);                                                                                \
    return incident - typename V::value_type(2) * FORM::dot(n, incident) * n;                                          \
  }                                                                                                                    \
  template <typename A, typename B, typename V = mrt::float_vector<A, B>>                                              \
  MRT_FUNC V refract(A first, B second, typename V::value_type eta) {                                                  \
    typedef typename V::value_type T;                                                                                  \
    const V incident(first), n(second);                                                                                \
    const T cosine = FORM::dot(n, incident);                                                                           \
    const T k = T(1) - eta * eta * (T(1) - cosine * cosine);                                                           \
    return k < T(0) ? V(T(0)) : eta * incident - (eta * cosine + sqrt(k)) * n;                                         \
  }                                                                                                                    \
  }
MRT_GEOMETRIC_FORM(precise)
MRT_GEOMETRIC_FORM(fast)
using MRT_DEFAULT::distance, MRT_DEFAULT::distance_squared, MRT_DEFAULT::normalize;
using MRT_DEFAULT::dot, MRT_DEFAULT::cross, MRT_DEFAULT::length, MRT_DEFAULT::length_squared;
using MRT_DEFAULT::faceforward, MRT_DEFAULT::reflect, MRT_DEFAULT::refract;

} // namespace metal
#endif
