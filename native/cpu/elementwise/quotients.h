// Floor division and remainders of floats. For float32 they are branch-free, and right for the quotients that
// is_divided accepts; correct_quotients recomputes the others.
#pragma once

#include "bits.h"

namespace orchard::ORCHARD_ISA {

// Division with a remainder, a = whole·b + rest, for quotients below 2^24. a/b may round up to the next integer; then
// the rest has the wrong sign. A rest between -|b| and |b| is a multiple of the lower last place of a and b, and
// therefore exact: in float32 if multiply-add is fused, else in float64, which represents the product exactly.
#if defined(__FMA__) || defined(__aarch64__)
using Quotient = float;
#else
using Quotient = double;
#endif
constexpr float largest_quotient = 1 << 24;

inline Quotient rest_of(Quotient a, Quotient b) {
  Quotient rest = fused(-std::trunc(a / b), b, a);
  Quotient step = (a < Quotient(0)) != (b < Quotient(0)) ? -b : b;
  return signs_differ(rest, a) ? rest + step : rest;
}

inline Quotient floor_of_quotient(Quotient a, Quotient b) {
  Quotient whole = std::floor(a / b);
  return signs_differ(fused(-whole, b, a), b) ? whole - Quotient(1) : whole;
}

inline bool is_divided(float a, float b) {
  return (absolute(a) < absolute(b) * largest_quotient) & (absolute(b) < infinity);
}

// Recomputes the elements that is_divided excludes, one by one.
template <class Formula>
inline void correct_quotients(const float *a, const float *b, float *out, int64_t count, Formula formula) {
  int32_t any = 0;
  for (int64_t i = 0; i < count; i++) any |= !is_divided(a[i], b[i]);
  for (int64_t i = 0; any && i < count; i++)
    if (!is_divided(a[i], b[i])) out[i] = formula(a[i], b[i]);
}

// The same for float64, with quotients below 2^52. Without fused multiply-add, every quotient is computed one by one.
#if defined(__FMA__) || defined(__aarch64__)
constexpr double largest_wide_quotient = 0x1p52;
#else
constexpr double largest_wide_quotient = 0;
#endif

inline bool is_divided(double a, double b) {
  return (std::fabs(a) < std::fabs(b) * largest_wide_quotient) & (std::fabs(b) < __builtin_inf());
}
inline double wide_rest(double a, double b) {
  double rest = fused(-std::trunc(a / b), b, a), step = (a < 0.0) != (b < 0.0) ? -b : b;
  return std::copysign(signs_differ(rest, a) ? rest + step : rest, a);
}
inline double floor_of_wide_quotient(double a, double b) {
  double whole = std::floor(a / b);
  return signs_differ(fused(-whole, b, a), b) ? whole - 1.0 : whole;
}

// Computes a row of float64 by `near`, and the elements that is_divided excludes by `far`.
template <class Near, class Far>
[[gnu::flatten]] inline void quotient_row(const double *__restrict a, const double *__restrict b,
                                          double *__restrict out, int64_t count, Near near, Far far) {
  int64_t others = 0;
  for (int64_t i = 0; i < count; i++) {
    others += !is_divided(a[i], b[i]);
    out[i] = near(a[i], b[i]);
  }
  for (int64_t i = 0; others > 0 && i < count; i++)
    if (!is_divided(a[i], b[i])) out[i] = far(a[i], b[i]);
}

inline float fmod(float a, float b) { return with_sign(float(rest_of(a, b)), a); }
inline double fmod(double a, double b) { return std::fmod(a, b); }

// Like fmod, but the result has the sign of the divisor.
inline float remainder(float a, float b) { return signed_as_divisor(fmod(a, b), b); }
inline double remainder(double a, double b) { return signed_as_divisor(fmod(a, b), b); }

// (a - remainder)/b, which is an integer except for rounding error; a/b could round up to the next integer.
inline float floor_divide(float a, float b) { return float(floor_of_quotient(a, b)); }
inline double floor_divide(double a, double b) {
  if (b == 0.0) return a / b;
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (signs_differ(rest, b)) quotient -= 1.0;
  double whole = std::floor(quotient);
  if (quotient - whole > 0.5) whole += 1.0;
  return quotient == 0.0 ? std::copysign(0.0, a / b) : whole;
}

} // namespace orchard::ORCHARD_ISA
