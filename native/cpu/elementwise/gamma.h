// The logarithm of the gamma function and its derivatives. For float32, lgamma and digamma have no branches, like
// math.h.
//
// On 1 … 3 both are computed as the product of a factor that has their zeros and a smooth quotient, which is
// interpolated at Chebyshev points. Arguments from 3 to `far` are reduced to this range by the recurrence, and
// arguments below 1 are raised to it. From `far` on asymptotic series are used, and for negative arguments the
// reflection formulas. Sources: NIST Digital Library of Mathematical Functions, 5.5 (recurrences and reflections), 5.11
// (asymptotic series) and 25.11 (Hurwitz's zeta). Errors are within 4 units in the last place of the largest term.
#pragma once

#include "special.h"

#include <math.h>

namespace orchard::ORCHARD_ISA {

// x reduced to 1 … 3 by subtracting ones, which is exact. `product` is the product of the values in between, and `sum`
// is the sum of their reciprocals times that product.
template <class Number> struct Reduced {
  Number x, product, sum;
};

template <class Number, int steps> inline Reduced<Number> reduced_to_three(Number x) {
  Reduced<Number> y{x, Number(1), Number(0)};
  for (int step = 0; step < steps; step++) {
    bool is_above = y.x >= Number(3);
    Number below = y.x - Number(1);
    y.sum = is_above ? y.sum * below + y.product : y.sum;
    y.product = is_above ? y.product * below : y.product;
    y.x = is_above ? below : y.x;
  }
  return y;
}

// ---------------------------------------------------------------- lgamma

// ln Γ(x)/((x - 1)(x - 2)) for 1 ≤ x ≤ 3, as a function of t = x - 2.
inline float log_gamma_quotient(float t) {
  return polynomial(t, 1.8091514e-05f, -3.85804742e-05f, 2.38816065e-05f, -5.28397359e-05f, 0.000191739688f,
                    -0.00042515414f, 0.000912594493f, -0.00210224232f, 0.00499899592f, -0.0123849437f, 0.0329649895f,
                    -0.100317277f, 0.422784328f);
}

// For x ≥ 0. Below 1 it is computed as ln Γ(x + 1) - ln x.
inline float log_gamma_of_positive(float x) {
  constexpr float far = 8.0f;
  Reduced<float> y = reduced_to_three<float, 5>(x);
  bool is_small = x < 1.0f, is_far = x >= far;
  float t = is_small ? x - 1.0f : y.x - 2.0f;
  float near = (is_small ? x * t : (y.x - 1.0f) * t) * log_gamma_quotient(t);
  float logarithm = log(is_small | is_far ? x : y.product);
  float r = 1.0f / x, z = r * r;
  float series = fused(r, polynomial(z, 0.000793650794f, -0.00277777778f, 0.0833333333f), 0.418938533f);
  float large = fused(x - 0.5f, logarithm - 1.0f, series);
  return is_far ? large : is_small ? near - logarithm : near + logarithm;
}

// For x < 0, with a = -x: -ln(|sin πa|/π) - ln Γ(1 + a). It is infinite at integers and at -∞.
inline float lgamma(float x) {
  float a = absolute(x), r = turns(a).remainder;
  bool is_negative = x < 0.0f;
  float other = log_gamma_of_positive(is_negative ? 1.0f + a : x);
  float reflected = -log(absolute(r) * sine_quotient(r)) - other;
  float special = (r == 0.0f) | (a == infinity) ? infinity : reflected;
  return is_negative ? special : other;
}

// lgamma_r is thread-safe: it does not write the sign to a global variable.
inline double lgamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

// ---------------------------------------------------------------- digamma

// ψ(x)/(x - root) for 1 ≤ x ≤ 3, as a function of t = x - 2. The root is stored as the sum of two numbers.
inline float digamma_quotient(float t) {
  return polynomial(t, -0.000110363042f, 0.000220856396f, -5.58361135e-05f, 0.000112410227f, -0.000758196984f,
                    0.00152395468f, -0.00270920573f, 0.00549150351f, -0.0113436282f, 0.0234577022f, -0.0495507047f,
                    0.10899926f, -0.260738969f, 0.785307527f);
}
inline double digamma_quotient(double t) {
  return polynomial(t, 9.518171739147029e-09, -1.903635721105846e-08, -3.093398948520762e-08, 6.186795491568026e-08,
                    1.0053608396456935e-07, -2.0107270819670245e-07, -2.9145119207885333e-08, 5.8285994586065274e-08,
                    4.290253291489252e-07, -8.580896982578119e-07, 1.238910144497479e-06, -2.4781719030311023e-06,
                    5.253172898961469e-06, -1.0509526063726006e-05, 2.089802780670172e-05, -4.182492865527941e-05,
                    8.377787676220672e-05, -0.00016781978030629567, 0.0003364327195465597, -0.0006753127085218515,
                    0.0013581421476875015, -0.0027395729429329422, 0.005552254174526186, -0.011338432550277753,
                    0.02344730959760139, -0.049551032917745826, 0.10899991701762815, -0.26073895468300085,
                    0.7853075386041053);
}
template <class Number> constexpr Number digamma_root = 1.4616321449683622;
template <class Number> constexpr Number digamma_root_remainder = 9.549995429965697e-17;
template <> inline constexpr float digamma_root<float> = 1.46163213f;
template <> inline constexpr float digamma_root_remainder<float> = 1.24381499e-08f;

// 1/12 - 1/(120·x²) + 1/(252·x⁴) - …, as a function of z = 1/x².
inline float digamma_series(float z) { return polynomial(z, 0.00396825397f, -0.00833333333f, 0.0833333333f); }
inline double digamma_series(double z) {
  return polynomial(z, 1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12);
}

// For x ≥ 0. Below 1 it is computed as ψ(x + 1) - 1/x.
template <class Number> inline Number digamma_of_positive(Number x) {
  constexpr bool is_float = std::is_same_v<Number, float>;
  constexpr Number far = is_float ? 8 : 16;
  Reduced<Number> y = reduced_to_three<Number, is_float ? 5 : 13>(x);
  bool is_small = x < Number(1);
  Number t = is_small ? x - Number(1) : y.x - Number(2);
  Number from_high = is_small ? x - (digamma_root<Number> - Number(1)) : y.x - digamma_root<Number>;
  Number from_root = from_high - digamma_root_remainder<Number>;
  Number steps = (is_small ? Number(-1) : y.sum) / (is_small ? x : y.product);
  Number near = from_root * digamma_quotient(t) + steps;
  Number r = Number(1) / x;
  Number large = log(x) - r * (Number(0.5) + r * digamma_series(r * r));
  return x >= far ? large : near;
}

// π·cot(πr) = (1 - 4r²)·C(r²)/r, where C is interpolated at Chebyshev points.
inline float pi_cotangent(float r) {
  float c = polynomial(r * r, 1.75992048f, 0.220113218f, 0.749854326f, 0.661266685f, 0.676204801f, 0.710126758f, 1.0f);
  return fused(-2.0f, r, 1.0f) * fused(2.0f, r, 1.0f) * c / r;
}
inline double pi_cotangent(double r) {
  constexpr double pi = 3.14159265358979323846;
  return pi * std::cos(pi * r) / std::sin(pi * r);
}

// For x < 0, with a = -x: ψ(1 + a) + π·cot(πa). NaN at integers and at -∞.
template <class Number> inline Number digamma(Number x) {
  Number a = std::fabs(x), r = turns(a).remainder;
  bool is_negative = x < Number(0);
  Number other = digamma_of_positive(is_negative ? Number(1) + a : x);
  Number reflected = other + pi_cotangent(r);
  Number special = r == Number(0) ? Number(__builtin_nan("")) : reflected;
  return is_negative ? special : other;
}

// ---------------------------------------------------------------- polygamma

// n!/z^(n+1), multiplied factor by factor, so that it overflows only if the result does.
inline double factorial_power(int n, double z) {
  double product = 1.0 / z;
  for (int k = 1; k <= n; k++) product *= double(k) / z;
  return product;
}

// n!·ζ(n + 1, x), the sum of n!/(x + k)^(n+1) over k ≥ 0, for n ≥ 1 and x ≥ 0. The first 12 terms are added one by one;
// the remaining sum is the Euler–Maclaurin formula at y = x + 12: an integral, half a term, and a series.
inline double scaled_zeta(int n, double x) {
  constexpr int terms = 12;
  // B_2k/(2k)! for k = 1, 2, …
  constexpr double series[] = {1.0 / 12,
                               -1.0 / 720,
                               1.0 / 30240,
                               -1.0 / 1209600,
                               1.0 / 47900160,
                               -691.0 / 1307674368000.0,
                               1.0 / 74724249600.0,
                               -3617.0 / 10670622842880000.0};
  double y = x + terms, r = 1.0 / y, integral = factorial_power(n - 1, y), term = integral * n * r;
  double sum = integral + 0.5 * term, rising = term * (n + 1) * r;
  for (int k = 0; k < 8; k++) {
    sum += series[k] * rising;
    rising *= (n + 2 * k + 2) * r * ((n + 2 * k + 3) * r);
  }
  for (int k = terms - 1; k >= 0; k--) sum += factorial_power(n, x + k);
  return sum;
}

// The derivative of ψ of order n ≥ 1: (-1)^s·n!·ζ(s, x) with s = n + 1. For x < 0: the sum of 1/(x + k)^s over all
// integers k depends only on the remainder r of x; the terms with x + k < 0 are again a zeta function, ζ(s, 1 - x), and
// are subtracted.
inline double polygamma(double order, double x) {
  int n = order >= 1.0 && order < 1e6 ? int(order) : 1;
  double sign = n % 2 == 0 ? -1.0 : 1.0;
  if (!(x < 0.0)) return sign * scaled_zeta(n, std::fabs(x));
  double r = -turns(-x).remainder;
  double below = r == 0.0 ? __builtin_inf() : factorial_power(n, r) + scaled_zeta(n, 1.0 + r);
  return sign * below + (scaled_zeta(n, 1.0 - r) - scaled_zeta(n, 1.0 - x));
}
inline float polygamma(float order, float x) { return float(polygamma(double(order), double(x))); }

} // namespace orchard::ORCHARD_ISA
