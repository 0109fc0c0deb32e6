// Math functions (MSL 6.5) for float, half and their vectors, each in three namespaces: metal::precise, metal::fast,
// and metal, whose functions are the fast ones if MRT_FAST is set. Functions of a half are computed in float and
// rounded, which keeps them within 1 ulp.
//
// There are no separate functions for bfloat: it converts to float, and the result is a float.
#ifndef MRT_MATH_H
#define MRT_MATH_H

#include "componentwise.h"
#include "fast.h"

#ifndef MRT_FAST
#define MRT_FAST 0
#endif
#if MRT_FAST
#define MRT_DEFAULT fast
#else
#define MRT_DEFAULT precise
#endif

namespace mrt {

// The next value after x toward y, computed on bits: U is the integer type of T's size.
template <typename U, typename T> MRT_FUNC T next_after(T x, T y) {
  if (x != x || y != y) return T(x + y);
  if (x == y) return y;
  constexpr U sign = U(1) << (8 * sizeof(U) - 1);
  if (x == T(0)) return __builtin_bit_cast(T, U(y < T(0) ? sign | 1 : 1));
  const U bits = __builtin_bit_cast(U, x);
  return __builtin_bit_cast(T, U((x < y) == (x > T(0)) ? bits + 1 : bits - 1));
}

} // namespace mrt

namespace metal {

// Defines NAME in the namespace FORM; the second macro defines both, and the default.
#define MRT_MATH1_IN(FORM, NAME)                                                                                       \
  namespace FORM {                                                                                                     \
  MRT_DEFINE(float NAME(float x), return mrt::FORM::NAME(x);)                                                          \
  MRT_DEFINE(half NAME(half x), return half(mrt::FORM::NAME(float(x)));)                                               \
  MRT_VECTOR1(NAME, float, mrt::same)                                                                                  \
  }
#define MRT_MATH2_IN(FORM, NAME)                                                                                       \
  namespace FORM {                                                                                                     \
  MRT_DEFINE(float NAME(float x, float y), return mrt::FORM::NAME(x, y);)                                              \
  MRT_DEFINE(half NAME(half x, half y), return half(mrt::FORM::NAME(float(x), float(y)));)                             \
  MRT_VECTOR2(NAME, float, mrt::same)                                                                                  \
  }
#define MRT_MATH1(NAME) MRT_MATH1_IN(precise, NAME) MRT_MATH1_IN(fast, NAME) using MRT_DEFAULT::NAME;
#define MRT_MATH2(NAME) MRT_MATH2_IN(precise, NAME) MRT_MATH2_IN(fast, NAME) using MRT_DEFAULT::NAME;

// Transcendental functions of a half are precise in all namespaces.
// clang-format off
#define MRT_FOR_MATH1(M)                                                                                               \
  M(acos) M(acosh) M(asin) M(asinh) M(atan) M(atanh) M(ceil) M(cos) M(cosh) M(cospi) M(exp) M(exp10) M(exp2) M(fabs)   \
  M(floor) M(log) M(log10) M(log2) M(rint) M(round) M(rsqrt) M(sin) M(sinh) M(sinpi) M(sqrt) M(tan) M(tanh) M(tanpi)   \
  M(trunc)
// clang-format on
#define MRT_FOR_MATH2(M) M(atan2) M(copysign) M(divide) M(fdim) M(fmax) M(fmin) M(fmod) M(pow) M(powr)
MRT_FOR_MATH1(MRT_MATH1)
MRT_FOR_MATH2(MRT_MATH2)

// ---------------------------------------------------------------- functions that are the same in all namespaces
#define MRT_MATH_FORM(FORM)                                                                                            \
  namespace FORM {                                                                                                     \
  MRT_FUNC float abs(float x) { return fabs(x); }                                                                      \
  MRT_FUNC half abs(half x) { return fabs(x); }                                                                        \
  MRT_VECTOR1(abs, float, mrt::same)                                                                                   \
  MRT_FUNC float min(float x, float y) { return fmin(x, y); }                                                          \
  MRT_FUNC half min(half x, half y) { return fmin(x, y); }                                                             \
  MRT_VECTOR2(min, float, mrt::same)                                                                                   \
  MRT_FUNC float max(float x, float y) { return fmax(x, y); }                                                          \
  MRT_FUNC half max(half x, half y) { return fmax(x, y); }                                                             \
  MRT_VECTOR2(max, float, mrt::same)                                                                                   \
  MRT_MATH3(min3, fmin(x, fmin(y, z)))                                                                                 \
  MRT_MATH3(max3, fmax(x, fmax(y, z)))                                                                                 \
  MRT_MATH3(median3, fmax(fmin(x, y), fmin(fmax(x, y), z)))                                                            \
  MRT_MATH3(fmin3, fmin(x, fmin(y, z)))                                                                                \
  MRT_MATH3(fmax3, fmax(x, fmax(y, z)))                                                                                \
  MRT_MATH3(fmedian3, fmax(fmin(x, y), fmin(fmax(x, y), z)))                                                           \
  MRT_DEFINE(float fma(float x, float y, float z), return mrt::precise::fma(x, y, z);)                                 \
  MRT_DEFINE(half fma(half x, half y, half z), return mrt::precise::fma(x, y, z);)                                     \
  MRT_VECTOR3(fma, float, mrt::same)                                                                                   \
  MRT_FUNC float nextafter(float x, float y) { return mrt::next_after<uint>(x, y); }                                   \
  MRT_FUNC half nextafter(half x, half y) { return mrt::next_after<ushort>(x, y); }                                    \
  MRT_VECTOR2(nextafter, float, mrt::same)                                                                             \
  MRT_FRACT(float, 0x1.fffffep-1f)                                                                                     \
  MRT_FRACT(half, 0x1.ffcp-1f)                                                                                         \
  MRT_VECTOR1(fract, float, mrt::same)                                                                                 \
  }
#define MRT_MATH3(NAME, ...)                                                                                           \
  MRT_FUNC float NAME(float x, float y, float z) { return __VA_ARGS__; }                                               \
  MRT_FUNC half NAME(half x, half y, half z) { return __VA_ARGS__; }                                                   \
  MRT_VECTOR3(NAME, float, mrt::same)
// x - floor(x), limited to values below 1 where rounding would give 1.
#define MRT_FRACT(T, LARGEST)                                                                                          \
  MRT_FUNC T fract(T x) {                                                                                              \
    const T part = x - floor(x);                                                                                       \
    return part >= T(1) ? T(LARGEST) : part;                                                                           \
  }
MRT_MATH_FORM(precise)
MRT_MATH_FORM(fast)
using MRT_DEFAULT::abs, MRT_DEFAULT::min, MRT_DEFAULT::max, MRT_DEFAULT::min3, MRT_DEFAULT::max3, MRT_DEFAULT::median3;
using MRT_DEFAULT::fmin3, MRT_DEFAULT::fmax3, MRT_DEFAULT::fmedian3, MRT_DEFAULT::fma, MRT_DEFAULT::nextafter,
    MRT_DEFAULT::fract;

// ---------------------------------------------------------------- functions with an exponent or a second result
#define MRT_VECTOR_OUT(NAME, U)                                                                                        \
  template <typename T, int N> MRT_FUNC vec<T, N> NAME(vec<T, N> x, MRT_THREAD vec<U, N> &out) {                       \
    for (int i = 0; i < N; ++i) {                                                                                      \
      U second;                                                                                                        \
      x[i] = NAME(x[i], second);                                                                                       \
      out[i] = second;                                                                                                 \
    }                                                                                                                  \
    return x;                                                                                                          \
  }
#define MRT_MODF(T)                                                                                                    \
  MRT_FUNC T modf(T x, MRT_THREAD T &whole) {                                                                          \
    whole = trunc(x);                                                                                                  \
    return copysign(whole == x ? T(0) : x - whole, x);                                                                 \
  }
#define MRT_SINCOS(T)                                                                                                  \
  MRT_FUNC T sincos(T x, MRT_THREAD T &cosine) {                                                                       \
    cosine = cos(x);                                                                                                   \
    return sin(x);                                                                                                     \
  }

#define MRT_EXPONENT_FORM(FORM)                                                                                        \
  namespace FORM {                                                                                                     \
  MRT_DEFINE(float ldexp(float x, int k), return mrt::precise::ldexp(x, k);)                                           \
  MRT_DEFINE(half ldexp(half x, int k), return half(mrt::precise::ldexp(float(x), k));)                                \
  template <typename T, int N> MRT_FUNC vec<T, N> ldexp(vec<T, N> x, vec<int, N> k) {                                  \
    for (int i = 0; i < N; ++i) x[i] = ldexp(x[i], k[i]);                                                              \
    return x;                                                                                                          \
  }                                                                                                                    \
  MRT_DEFINE(int ilogb(float x), return mrt::precise::ilogb(x);)                                                       \
  MRT_DEFINE(int ilogb(half x), return mrt::precise::ilogb(float(x));)                                                 \
  MRT_VECTOR1(ilogb, float, mrt::integers)                                                                             \
  MRT_DEFINE(float frexp(float x, MRT_THREAD int &exponent), return mrt::precise::frexp(x, exponent);)                 \
  MRT_DEFINE(half frexp(half x, MRT_THREAD int &exponent), return half(mrt::precise::frexp(float(x), exponent));)      \
  MRT_VECTOR_OUT(frexp, int)                                                                                           \
  MRT_MODF(float)                                                                                                      \
  MRT_MODF(half)                                                                                                       \
  MRT_VECTOR_OUT(modf, T)                                                                                              \
  MRT_SINCOS(float)                                                                                                    \
  MRT_SINCOS(half)                                                                                                     \
  MRT_VECTOR_OUT(sincos, T)                                                                                            \
  }
MRT_EXPONENT_FORM(precise)
MRT_EXPONENT_FORM(fast)
using MRT_DEFAULT::ldexp, MRT_DEFAULT::ilogb, MRT_DEFAULT::frexp, MRT_DEFAULT::modf, MRT_DEFAULT::sincos;

} // namespace metal
#endif
