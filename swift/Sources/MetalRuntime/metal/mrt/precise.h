// The precise math functions (MSL 8.1) for one float. Those of libm compute in double precision and round once, which
// keeps them within 1 ulp, well within Table 8.1.
#ifndef MRT_PRECISE_H
#define MRT_PRECISE_H

#ifndef MRT_STRICT

#include "current.h"
#include "macros.h"
#include "types.h"

namespace mrt {
namespace precise {

#ifdef MRT_GPU
#include "gpu/math.h"
#else
#define MRT_LIBM1(NAME)                                                                                                \
  MRT_FUNC float NAME(float x) { return float(mrt::runtime->math->NAME(double(x))); }
#define MRT_LIBM2(NAME)                                                                                                \
  MRT_FUNC float NAME(float x, float y) { return float(mrt::runtime->math->NAME(double(x), double(y))); }
MRT_LIBM1(sin)
MRT_LIBM1(cos)
MRT_LIBM1(tan)
MRT_LIBM1(asin)
MRT_LIBM1(acos)
MRT_LIBM1(atan)
MRT_LIBM1(sinh)
MRT_LIBM1(cosh)
MRT_LIBM1(tanh)
MRT_LIBM1(asinh)
MRT_LIBM1(acosh)
MRT_LIBM1(atanh)
MRT_LIBM1(exp)
MRT_LIBM1(exp2)
MRT_LIBM1(log)
MRT_LIBM1(log2)
MRT_LIBM1(log10)
MRT_LIBM2(atan2)
MRT_LIBM2(pow)
MRT_LIBM2(fmod)

// Literals are floats in a Metal program, so constants with more precision are written as long doubles.
constexpr double pi = double(3.14159265358979323846L);
constexpr double log2_of_10 = double(3.32192809488736234787L);

MRT_FUNC float exp10(float x) { return float(mrt::runtime->math->exp2(double(x) * log2_of_10)); }

// x^y for x >= 0 by its definition; NaN for 0^0, inf^0, 1^inf and negative x.
MRT_FUNC float powr(float x, float y) {
  return float(mrt::runtime->math->exp2(double(y) * mrt::runtime->math->log2(double(x))));
}

// sin(pi r) for |r| <= 1, with exact zeros at the integers. The reduction to that range is exact.
MRT_FUNC double sine_of_turn(double r) {
  const double near = __builtin_fabs(r) > double(0.5f) ? __builtin_copysign(1 - __builtin_fabs(r), r) : r;
  return mrt::runtime->math->sin(pi * near);
}
MRT_FUNC double turn(double x) { return x - 2 * __builtin_rint(x / 2); }
MRT_FUNC double cosine_of_turn(double r) { return sine_of_turn(double(0.5f) - __builtin_fabs(r)); }
MRT_FUNC float sinpi(float x) { return float(sine_of_turn(turn(double(x)))); }
MRT_FUNC float cospi(float x) { return float(cosine_of_turn(turn(double(x)))); }
MRT_FUNC float tanpi(float x) {
  const double r = turn(double(x));
  return float(sine_of_turn(r) / cosine_of_turn(r));
}
#endif

MRT_FUNC float sqrt(float x) { return __builtin_sqrtf(x); }
MRT_FUNC float rsqrt(float x) { return float(1 / __builtin_sqrt(double(x))); }
MRT_FUNC float divide(float x, float y) { return x / y; }

// MSL 6.5: if one operand is NaN, the result is the other one.
MRT_FUNC float fmin(float x, float y) { return __builtin_fminf(x, y); }
MRT_FUNC float fmax(float x, float y) { return __builtin_fmaxf(x, y); }

MRT_FUNC float floor(float x) { return __builtin_floorf(x); }
MRT_FUNC float ceil(float x) { return __builtin_ceilf(x); }
MRT_FUNC float trunc(float x) { return __builtin_truncf(x); }
MRT_FUNC float rint(float x) { return __builtin_rintf(x); }
MRT_FUNC float round(float x) { return __builtin_roundf(x); }
MRT_FUNC float fabs(float x) { return __builtin_fabsf(x); }
MRT_FUNC float copysign(float x, float y) { return __builtin_copysignf(x, y); }
MRT_FUNC float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
MRT_FUNC float fdim(float x, float y) { return x <= y ? 0 : x - y; }

// fma of halves. The product is exact in double. If its sum with the third operand is rounded to odd in float, rounding
// it to half gives the same result as rounding once.
MRT_FUNC float round_to_odd(double x) {
  const float nearest = float(x);
  if (double(nearest) == x || nearest != nearest) return nearest;
  const uint bits = __builtin_bit_cast(uint, nearest);
  return __builtin_bit_cast(float, (__builtin_fabs(double(nearest)) > __builtin_fabs(x) ? bits - 1 : bits) | 1);
}
MRT_FUNC half fma(half x, half y, half z) { return half(round_to_odd(double(x) * double(y) + double(z))); }

// 2^k as a double, for k beyond the range of float: scaling by it is exact except for the final rounding.
MRT_FUNC double power_of_two(int k) {
  return __builtin_bit_cast(double, long(1023 + (k < -400 ? -400 : k > 400 ? 400 : k)) << 52);
}
MRT_FUNC float ldexp(float x, int k) { return float(double(x) * power_of_two(k)); }

// The exponent e of a finite x that is not 0, with 1 <= |x| / 2^e < 2. A subnormal float is a normal double.
MRT_FUNC int exponent(float x) { return int(__builtin_bit_cast(ulong, double(x)) >> 52 & 0x7ff) - 1023; }
MRT_FUNC int ilogb(float x) {
  if (x != x) return FP_ILOGBNAN;
  return x == 0 ? FP_ILOGB0 : __builtin_isinf(x) ? INT_MAX : exponent(x);
}
// Returns a fraction in [0.5, 1) and the exponent; for 0, infinities and NaN, the fraction is x itself.
MRT_FUNC float frexp(float x, int &power) {
  power = x == 0 || !__builtin_isfinite(x) ? 0 : exponent(x) + 1;
  return ldexp(x, -power);
}

} // namespace precise
} // namespace mrt

#endif
#endif
