// The logarithm of the gamma function and its derivatives. float32 uses kernels/formulas/gamma.h; float64 uses the C
// library's lgamma, more terms of digamma, and polygamma. Source: NIST Digital Library of Mathematical Functions, 25.11
// (Hurwitz's zeta).
#pragma once

#include "special.h"

#include <math.h>

namespace orchard::ORCHARD_ISA {

// lgamma_r is thread-safe: it does not write the sign to a global variable.
inline double lgamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
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
inline double digamma_root(double) { return 1.4616321449683622; }
inline double digamma_root_rest(double) { return 9.549995429965697e-17; }
inline double digamma_series(double z) {
  return polynomial(z, 1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12);
}
inline double pi_cotangent(double r) {
  constexpr double pi = 3.14159265358979323846;
  return pi * std::cos(pi * r) / std::sin(pi * r);
}

} // namespace orchard::ORCHARD_ISA

#include "../../../kernels/formulas/gamma.h"

namespace orchard::ORCHARD_ISA {

// ---------------------------------------------------------------- polygamma

// n!/z^(n+1), multiplied factor by factor, so that it overflows only if the result does.
inline double factorial_power(int n, double z) {
  double product = 1.0 / z;
  for (int k = 1; k <= n; k++) product *= double(k) / z;
  return product;
}

// B_2k/(2k)! for k = 1, 2, …
constexpr double zeta_series[] = {1.0 / 12,
                                  -1.0 / 720,
                                  1.0 / 30240,
                                  -1.0 / 1209600,
                                  1.0 / 47900160,
                                  -691.0 / 1307674368000.0,
                                  1.0 / 74724249600.0,
                                  -3617.0 / 10670622842880000.0};

// n!·ζ(n + 1, x), the sum of n!/(x + k)^(n+1) over k ≥ 0, for n ≥ 1 and x ≥ 0. The first 12 terms are added one by one;
// the remaining sum is the Euler–Maclaurin formula at y = x + 12: an integral, half a term, and a series.
inline double scaled_zeta(int n, double x) {
  constexpr int terms = 12;
  double y = x + terms, r = 1.0 / y, integral = factorial_power(n - 1, y), term = integral * n * r;
  double sum = integral + 0.5 * term, rising = term * (n + 1) * r;
  for (int k = 0; k < 8; k++) {
    sum += zeta_series[k] * rising;
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
