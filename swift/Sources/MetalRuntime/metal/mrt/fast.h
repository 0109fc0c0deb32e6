// The fast math functions (MSL 8.1, Table 8.2) for one float: the formulas given in the table, computed in float,
// including their overflow and cancellation. A program that works with these functions does not depend on more than MSL
// guarantees.
#ifndef MRT_FAST_H
#define MRT_FAST_H

#ifndef MRT_STRICT

#include "precise.h"

namespace mrt {
namespace fast {

using precise::asin, precise::acos, precise::atan, precise::fmod, precise::log2, precise::rsqrt, precise::divide;
using precise::copysign, precise::fdim;
using precise::floor, precise::ceil, precise::trunc, precise::rint, precise::round, precise::fabs;

#ifdef MRT_GPU
// One instruction, within 2 ulp (PTX ISA, ex2.approx).
MRT_FUNC float exp2(float x) {
  float power;
  __asm__("ex2.approx.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}
#else
using precise::exp2;
#endif

MRT_FUNC float exp(float x) { return exp2(x * 1.44269504088896340736f); }
MRT_FUNC float exp10(float x) { return exp2(x * 3.32192809488736234787f); }
MRT_FUNC float log(float x) { return log2(x) * 0.693147180559945309417f; }
MRT_FUNC float log10(float x) { return log2(x) * 0.301029995663981195214f; }

MRT_FUNC float pow(float x, float y) { return exp2(y * log2(x)); }
MRT_FUNC float powr(float x, float y) { return exp2(y * log2(x)); }

// x * rsqrt(x), which would be NaN for 0 and infinity.
MRT_FUNC float sqrt(float x) { return x == 0 || x == __builtin_inff() ? x : x * rsqrt(x); }

// Converts an angle to a fraction of a turn in float, so the absolute error grows with the angle.
MRT_FUNC float turn(float x) {
  const float turns = x * 0.159154943091895335769f;
  return turns - __builtin_rintf(turns);
}
MRT_FUNC float sin(float x) { return precise::sin(6.28318530717958647692f * turn(x)); }
MRT_FUNC float cos(float x) { return precise::cos(6.28318530717958647692f * turn(x)); }
MRT_FUNC float tan(float x) { return sin(x) / cos(x); }
MRT_FUNC float sinpi(float x) { return sin(x * 3.14159265358979323846f); }
MRT_FUNC float cospi(float x) { return cos(x * 3.14159265358979323846f); }
MRT_FUNC float tanpi(float x) { return tan(x * 3.14159265358979323846f); }

MRT_FUNC float sinh(float x) { return 0.5f * (exp(x) - exp(-x)); }
MRT_FUNC float cosh(float x) { return 0.5f * (exp(x) + exp(-x)); }
MRT_FUNC float tanh(float x) {
  const float t = exp(2.0f * x);
  return (t - 1.0f) / (t + 1.0f);
}
MRT_FUNC float asinh(float x) { return log(x + sqrt(x * x + 1.0f)); }
MRT_FUNC float acosh(float x) { return log(x + sqrt(x * x - 1.0f)); }
MRT_FUNC float atanh(float x) { return 0.5f * log((1.0f + x) / (1.0f - x)); }

// atan(y / x), moved into the quadrant of (x, y).
MRT_FUNC float atan2(float y, float x) {
  if (x == 0 && y == 0) return precise::atan2(y, x);
  const float a = atan(y / x);
  return x < 0 ? a + __builtin_copysignf(3.14159265358979323846f, y) : a;
}

// The result is undefined if an operand is NaN: here it is the first operand, unlike in the precise functions.
MRT_FUNC float fmin(float x, float y) { return y < x ? y : x; }
MRT_FUNC float fmax(float x, float y) { return x < y ? y : x; }

} // namespace fast
} // namespace mrt

#endif
#endif
