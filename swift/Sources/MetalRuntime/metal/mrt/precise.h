// The precise forms of the mathematics (MSL 8.1), of one float. Those of libm compute in double precision and round once, which
// keeps them within 1 ulp, well inside Table 8.1.
#ifndef MRT_PRECISE_H
#define MRT_PRECISE_H

#ifndef MRT_STRICT

#include "current.h"
#include "types.h"

namespace mrt {
namespace precise {

#define MRT_LIBM1(NAME)                                                                                                \
  MRT_FUNC float NAME(float x) { return float(runtime->math->NAME(double(x))); }
#define MRT_LIBM2(NAME)                                                                                                \
  MRT_FUNC float NAME(float x, float y) { return float(runtime->math->NAME(double(x), double(y))); }
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

// Literals are floats in a Metal program: constants of more precision are long doubles here.
constexpr double pi = double(3.14159265358979323846L);
constexpr double log2_of_10 = double(3.32192809488736234787L);

MRT_FUNC float exp10(float x) { return float(runtime->math->exp2(double(x) * log2_of_10)); }

// x^y for x >= 0, by its definition: NaN for 0^0, inf^0, 1^inf and negative x.
MRT_FUNC float powr(float x, float y) { return float(runtime->math->exp2(double(y) * runtime->math->log2(double(x)))); }

MRT_FUNC float sqrt(float x) { return __builtin_sqrtf(x); }
MRT_FUNC float rsqrt(float x) { return float(1 / __builtin_sqrt(double(x))); }
MRT_FUNC float divide(float x, float y) { return x / y; }

// sin(pi r) for |r| <= 1, with exact zeros at the integers; the reductions to that range are exact.
MRT_FUNC double sine_of_turn(double r) {
  const double near = __builtin_fabs(r) > double(0.5f) ? __builtin_copysign(1 - __builtin_fabs(r), r) : r;
  return runtime->math->sin(pi * near);
}
MRT_FUNC double turn(double x) { return x - 2 * __builtin_rint(x / 2); }
MRT_FUNC double cosine_of_turn(double r) { return sine_of_turn(double(0.5f) - __builtin_fabs(r)); }
MRT_FUNC float sinpi(float x) { return float(sine_of_turn(turn(double(x)))); }
MRT_FUNC float cospi(float x) { return float(cosine_of_turn(turn(double(x)))); }
MRT_FUNC float tanpi(float x) {
  const double r = turn(double(x));
  return float(sine_of_turn(r) / cosine_of_turn(r));
}

// MSL 6.5: where one operand is a NaN, the other.
MRT_FUNC float fmin(float x, float y) { return __builtin_fminf(x, y); }
MRT_FUNC float fmax(float x, float y) { return __builtin_fmaxf(x, y); }

} // namespace precise
} // namespace mrt

#endif
#endif
