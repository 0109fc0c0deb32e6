// Hurwitz's zeta function and the functions of gamma.h that are sums of its terms, for many elements at a time. They
// are computed in float64. Source: NIST Digital Library of Mathematical Functions, 25.11.
#pragma once

#include "gamma.h"

namespace orchard::ORCHARD_ISA {

// The terms of zeta functions that are added one by one, and the terms of the series for the remaining sum. Results are
// computed in float64 and accurate to the last places of T.
template <class T> constexpr int zeta_terms = std::is_same_v<T, float> ? 5 : 10;
template <class T> constexpr int zeta_series_terms = std::is_same_v<T, float> ? 4 : 8;

// n!/z^(n+1), multiplied factor by factor, so that it overflows only if the result does.
inline double powers_product(int n, double z) {
  const double r = 1.0 / z;
  double product = r;
  for (int k = 1; k <= n; k++) product *= double(k) * r;
  return product;
}

// n!·ζ(n + 1, x), the sum of n!/(x + k)^(n+1) over k ≥ 0, for n ≥ 1 and x ≥ 0. The first terms are added one by one;
// the remaining sum is the Euler–Maclaurin formula at y: an integral, half a term, and a series.
template <class T> inline double sum_of_factorial_powers(int n, double x) {
  constexpr int terms = zeta_terms<T>;
  const double y = x + terms, r = 1.0 / y, integral = powers_product(n - 1, y), term = integral * n * r;
  double sum = integral + 0.5 * term, rising = term * (n + 1) * r;
  for (int k = 0; k < zeta_series_terms<T>; k++) {
    sum += zeta_series[k] * rising;
    rising *= (n + 2 * k + 2) * r * ((n + 2 * k + 3) * r);
  }
  for (int k = terms - 1; k >= 0; k--) sum += powers_product(n, x + k);
  return sum;
}

// The derivative of ψ of order n for x ≥ 0: (-1)^s·n!·ζ(s, x) with s = n + 1.
template <class T> inline T polygamma_of_positive(int n, T x) {
  return T((n % 2 == 0 ? -1.0 : 1.0) * sum_of_factorial_powers<T>(n, std::fabs(double(x))));
}

// Polygamma of many elements of one order. For the orders from 1 to 4, which are constants in the loop, elements x ≥ 0
// are computed by vectors.
template <int n, class T>
[[gnu::flatten]] inline void polygammas_of(const T *__restrict x, T *__restrict out, int64_t count) {
  for (int64_t i = 0; i < count; i++) out[i] = polygamma_of_positive(n, x[i]);
}
template <class T> void polygammas(int n, const T *x, T *out, int64_t count) {
  if (n == 1) polygammas_of<1>(x, out, count);
  else if (n == 2) polygammas_of<2>(x, out, count);
  else if (n == 3) polygammas_of<3>(x, out, count);
  else if (n == 4) polygammas_of<4>(x, out, count);
  for (int64_t i = 0; i < count; i++)
    if (n < 1 || n > 4 || x[i] < 0) out[i] = polygamma(T(n), x[i]);
}

// ---------------------------------------------------------------- Hurwitz's zeta function

// q^(-s) for q > 0; with float64's elementary functions, whose errors are far below float32's last place.
inline double negative_power(float, double q, double s) { return exp(-s * log(q)); }
inline double negative_power(double, double q, double s) { return std::pow(q, -s); }

// The sums of (q + k)^(-s) over k ≥ 0, by the Euler–Maclaurin formula, for s > 1 and q > 0. Source: NIST Digital
// Library of Mathematical Functions, 25.11.28. A sum is infinite for s = 1, and NaN for smaller s and for q ≤ 0.
// Elements are computed in parts, in loops without other loops, which compilers vectorize.
template <class T> [[gnu::flatten]] void zetas(const T *of_s, const T *of_q, T *out, int64_t count) {
  constexpr int part = 64, terms = zeta_terms<T>;
  double s[part], q[part], sums[part], factors[part];
  for (int64_t start = 0; start < count; start += part, of_s += part, of_q += part, out += part) {
    const int length = int(std::min<int64_t>(part, count - start));
    for (int i = 0; i < part; i++) {
      const bool is_inside = i < length && of_s[i] > T(1) && of_q[i] > T(0);
      s[i] = is_inside ? double(of_s[i]) : 2.0;
      q[i] = is_inside ? double(of_q[i]) : 1.0;
      sums[i] = 0.0;
    }
    for (int k = 0; k < terms; k++)
      for (int i = 0; i < part; i++) sums[i] += negative_power(T(0), q[i] + k, s[i]);
    for (int i = 0; i < part; i++) {
      const double a = q[i] + terms, power = negative_power(T(0), a, s[i]);
      sums[i] += power * a / (s[i] - 1.0) + 0.5 * power;
      factors[i] = power * s[i] / a;
    }
    for (int k = 0; k < zeta_series_terms<T>; k++)
      for (int i = 0; i < part; i++) {
        const double r = 1.0 / (q[i] + terms);
        sums[i] += zeta_series[k] * factors[i];
        factors[i] = factors[i] * (s[i] + (2 * k + 1)) * r * (s[i] + (2 * k + 2)) * r;
      }
    for (int i = 0; i < length; i++) {
      const double outside = of_s[i] == T(1) && of_q[i] > T(0) ? __builtin_inf() : __builtin_nan("");
      out[i] = T(of_s[i] > T(1) && of_q[i] > T(0) ? sums[i] : outside);
    }
  }
}

} // namespace orchard::ORCHARD_ISA
