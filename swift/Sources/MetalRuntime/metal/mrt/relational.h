// Relational functions (MSL 6.6). They are exact in fast math too.
#ifndef MRT_RELATIONAL_H
#define MRT_RELATIONAL_H

#include "integer.h"

namespace metal {

#define MRT_RELATIONAL1(NAME, ...)                                                                                     \
  MRT_FUNC bool NAME(float x) { return __VA_ARGS__; }                                                                  \
  MRT_FUNC bool NAME(half h) {                                                                                         \
    const float x = h;                                                                                                 \
    return __VA_ARGS__;                                                                                                \
  }                                                                                                                    \
  MRT_VECTOR1(NAME, float, mrt::booleans)
MRT_RELATIONAL1(isfinite, __builtin_fabsf(x) < __builtin_inff())
MRT_RELATIONAL1(isinf, __builtin_fabsf(x) == __builtin_inff())
MRT_RELATIONAL1(isnan, x != x)
MRT_RELATIONAL1(signbit, __builtin_bit_cast(int, x) < 0)

// Neither zero, subnormal, infinite nor NaN; the smallest normal value depends on the type.
#define MRT_IS_NORMAL(T, LEAST)                                                                                        \
  MRT_FUNC bool isnormal(T x) { return __builtin_fabsf(float(x)) >= LEAST && isfinite(x); }
MRT_IS_NORMAL(float, 0x1p-126f)
MRT_IS_NORMAL(half, 0x1p-14f)
MRT_VECTOR1(isnormal, float, mrt::booleans)

#define MRT_RELATIONAL2(NAME, ...)                                                                                     \
  MRT_FUNC bool NAME(float x, float y) { return __VA_ARGS__; }                                                         \
  MRT_FUNC bool NAME(half x, half y) { return __VA_ARGS__; }                                                           \
  MRT_VECTOR2(NAME, float, mrt::booleans)
MRT_RELATIONAL2(isordered, x == x && y == y)
MRT_RELATIONAL2(isunordered, x != x || y != y)

MRT_FUNC bool all(bool x) { return x; }
MRT_FUNC bool any(bool x) { return x; }
template <int N> MRT_FUNC bool all(vec<bool, N> v) {
  bool result = v.x && v.y;
  for (int i = 2; i < N; ++i) result = result && v[i];
  return result;
}
template <int N> MRT_FUNC bool any(vec<bool, N> v) {
  bool result = v.x || v.y;
  for (int i = 2; i < N; ++i) result = result || v[i];
  return result;
}

// select(a, b, c) = c ? b : a, component by component.
#define MRT_SELECT(T)                                                                                                  \
  MRT_FUNC T select(T a, T b, bool c) { return c ? b : a; }
MRT_FOR_VECTOR_ELEMENTS(MRT_SELECT)
template <typename A, typename B, typename V = mrt::any_vector<A, B>>
MRT_FUNC V select(A first, B second, mrt::booleans<V> c) {
  V a(first);
  const V b(second);
  for (int i = 0; i < mrt::shape<V>::count; ++i) a[i] = c[i] ? b[i] : a[i];
  return a;
}
template <typename A, typename B, typename V = mrt::any_vector<A, B>> MRT_FUNC V select(A a, B b, bool c) {
  return c ? V(b) : V(a);
}

} // namespace metal
#endif
