// The math functions of Apple's compiler, on which Apple's headers are based and which some programs call directly
// (such as MLX's bfloat functions): __metal_exp(x, mode), where the mode is __METAL_FAST_MATH__, __METAL_PRECISE_MATH__
// or __METAL_MAYBE_FAST_MATH__ (mrt/macros.h).
#ifndef MRT_BUILTINS_H
#define MRT_BUILTINS_H

#include "common.h"

#define MRT_BUILTIN_CALL(NAME, ...)                                                                                    \
  return mode == __METAL_FAST_MATH__      ? metal::fast::NAME(__VA_ARGS__)                                             \
         : mode == __METAL_PRECISE_MATH__ ? metal::precise::NAME(__VA_ARGS__)                                          \
                                          : metal::NAME(__VA_ARGS__);
#define MRT_BUILTIN1(NAME)                                                                                             \
  template <typename T> MRT_FUNC auto __metal_##NAME(T x, int mode) { MRT_BUILTIN_CALL(NAME, x) }
#define MRT_BUILTIN2(NAME)                                                                                             \
  template <typename T> MRT_FUNC auto __metal_##NAME(T x, T y, int mode) { MRT_BUILTIN_CALL(NAME, x, y) }
#define MRT_BUILTIN3(NAME)                                                                                             \
  template <typename T> MRT_FUNC auto __metal_##NAME(T x, T y, T z, int mode) { MRT_BUILTIN_CALL(NAME, x, y, z) }
MRT_FOR_MATH1(MRT_BUILTIN1)
MRT_BUILTIN1(fract)
MRT_BUILTIN1(saturate)
MRT_FOR_MATH2(MRT_BUILTIN2)
MRT_BUILTIN3(fmin3)
MRT_BUILTIN3(fmax3)
MRT_BUILTIN3(fmedian3)

// Functions without a mode.
template <typename T> MRT_FUNC T __metal_fma(T x, T y, T z) { return metal::fma(x, y, z); }
template <typename T> MRT_FUNC T __metal_nextafter(T x, T y) { return metal::nextafter(x, y); }
template <typename T, typename K> MRT_FUNC T __metal_ldexp(T x, K k, int) { return metal::ldexp(x, k); }
template <typename T, typename K> MRT_FUNC T __metal_frexp(T x, MRT_THREAD K *exponent) {
  return metal::frexp(x, *exponent);
}
template <typename T> MRT_FUNC bool __metal_isnan(T x, int) { return metal::isnan(x); }
template <typename T> MRT_FUNC bool __metal_isinf(T x, int) { return metal::isinf(x); }
template <typename T> MRT_FUNC bool __metal_isfinite(T x, int) { return metal::isfinite(x); }

#endif
