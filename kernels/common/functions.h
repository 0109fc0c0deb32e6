// The functions that formulas (formulas/*.h) call and C++ has by the same names (native/cpu/elementwise/math.h). Those
// of Metal's standard library are the precise ones.

#ifndef ORCHARD_COMMON_FUNCTIONS_H
#define ORCHARD_COMMON_FUNCTIONS_H

#include <metal_stdlib>

#define ORCHARD_FORMULAS orchard

namespace orchard {

#define ORCHARD_PRECISE(name) \
    inline float name(float x) { return metal::precise::name(x); }
ORCHARD_PRECISE(sqrt)
ORCHARD_PRECISE(rsqrt)
ORCHARD_PRECISE(exp)
ORCHARD_PRECISE(exp2)
ORCHARD_PRECISE(log)
ORCHARD_PRECISE(log2)
ORCHARD_PRECISE(log10)
ORCHARD_PRECISE(sin)
ORCHARD_PRECISE(cos)
ORCHARD_PRECISE(tan)
ORCHARD_PRECISE(asin)
ORCHARD_PRECISE(acos)
ORCHARD_PRECISE(atan)
ORCHARD_PRECISE(sinh)
ORCHARD_PRECISE(cosh)
ORCHARD_PRECISE(tanh)
ORCHARD_PRECISE(asinh)
ORCHARD_PRECISE(acosh)
ORCHARD_PRECISE(atanh)

inline float fabs(float x) { return metal::fabs(x); }
inline float floor(float x) { return metal::floor(x); }
inline float ceil(float x) { return metal::ceil(x); }
inline float rint(float x) { return metal::rint(x); }
inline float trunc(float x) { return metal::trunc(x); }
inline bool has_sign(float x) { return metal::signbit(x); }
inline float copysign(float magnitude, float sign) { return metal::copysign(magnitude, sign); }
inline float fmod(float a, float b) { return metal::precise::fmod(a, b); }
inline float pow(float a, float b) { return metal::precise::pow(a, b); }
inline float atan2(float a, float b) { return metal::precise::atan2(a, b); }

inline float fused(float a, float b, float c) { return metal::fma(a, b, c); }
inline float to_whole(float x) { return metal::rint(x); }
// Converts n, an integral float, to an integer; NaN gives 0.
inline int integer_of(float n) { return int(n == n ? n : 0.0f); }
inline float power_of_two(int n) { return metal::ldexp(1.0f, n); }

// Evaluates the polynomial with these coefficients, highest power first.
inline float polynomial(float, float lowest) { return lowest; }
template <typename... Rest> inline float polynomial(float x, float highest, float next, Rest... rest) {
    return polynomial(x, fused(highest, x, next), rest...);
}

}  // namespace orchard

#endif
