// Common functions (MSL 6.3).
#ifndef MRT_COMMON_H
#define MRT_COMMON_H

#include "relational.h"

namespace metal {

#define MRT_COMMON_OF(T)                                                                                               \
  MRT_FUNC T clamp(T x, T low, T high) { return fmin(fmax(x, low), high); }                                            \
  MRT_FUNC T saturate(T x) { return clamp(x, T(0), T(1)); }                                                            \
  MRT_FUNC T mix(T x, T y, T a) { return x + (y - x) * a; }                                                            \
  MRT_FUNC T sign(T x) { return x != x ? T(0) : x > T(0) ? T(1) : x < T(0) ? T(-1) : x; }                              \
  MRT_FUNC T step(T edge, T x) { return x < edge ? T(0) : T(1); }                                                      \
  MRT_FUNC T smoothstep(T from, T to, T x) {                                                                           \
    const T t = saturate((x - from) / (to - from));                                                                    \
    return t * t * (T(3) - T(2) * t);                                                                                  \
  }
#define MRT_COMMON_FORM(FORM)                                                                                          \
  namespace FORM {                                                                                                     \
  MRT_COMMON_OF(float)                                                                                                 \
  MRT_COMMON_OF(half)                                                                                                  \
  MRT_VECTOR3(clamp, float, mrt::same)                                                                                 \
  MRT_VECTOR1(saturate, float, mrt::same)                                                                              \
  MRT_VECTOR3(mix, float, mrt::same)                                                                                   \
  MRT_VECTOR1(sign, float, mrt::same)                                                                                  \
  MRT_VECTOR2(step, float, mrt::same)                                                                                  \
  MRT_VECTOR3(smoothstep, float, mrt::same)                                                                            \
  }
MRT_COMMON_FORM(precise)
MRT_COMMON_FORM(fast)
using MRT_DEFAULT::clamp, MRT_DEFAULT::saturate, MRT_DEFAULT::mix, MRT_DEFAULT::sign, MRT_DEFAULT::step,
    MRT_DEFAULT::smoothstep;
#ifdef MRT_SCALAR_BFLOAT
MRT_BFLOAT3(clamp)
#endif

} // namespace metal
#endif
