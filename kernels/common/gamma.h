// The logarithm of the gamma function and its derivatives for float32. C++ has the same lgamma and digamma
// (formulas/gamma.h), but computes polygamma in float64.
// Source: NIST Digital Library of Mathematical Functions, 5.5 and 25.11.

#ifndef ORCHARD_COMMON_GAMMA_H
#define ORCHARD_COMMON_GAMMA_H

#include <metal_stdlib>

#include "common/special.h"
#include "formulas/gamma.h"

namespace orchard {

// Returns n! / z^(n + 1), multiplied factor by factor, so that it overflows only if the result does.
inline float factorial_power(int n, float z) {
    float product = 1.0f / z;
    for (int k = 1; k <= n; k++) {
        product *= float(k) / z;
    }
    return product;
}

// n! zeta(n + 1, x), the sum of n! / (x + k)^(n + 1) over k >= 0, for n >= 1 and x >= 0. The first 8 terms are added
// one by one; the remaining sum is the Euler-Maclaurin formula at y = x + 8: an integral, half a term, and a series
// with coefficients B_2k / (2k)!.
inline float scaled_zeta(int n, float x) {
    const int terms = 8;
    float y = x + float(terms);
    float r = 1.0f / y;
    float order = float(n);
    float integral = factorial_power(n - 1, y);
    float term = integral * (order * r);
    float z = r * r;
    float p = metal::fma((order + 6.0f) * (order + 7.0f) * z, -8.26719577e-07f, 3.30687831e-05f);
    p = metal::fma((order + 4.0f) * (order + 5.0f) * z, p, -0.00138888889f);
    p = metal::fma((order + 2.0f) * (order + 3.0f) * z, p, 0.0833333333f);
    float sum = integral + term * metal::fma((order + 1.0f) * r, p, 0.5f);
    for (int k = terms - 1; k >= 0; k--) {
        sum += factorial_power(n, x + float(k));
    }
    return sum;
}

// The derivative of psi of order n >= 1: (-1)^s n! zeta(s, x) with s = n + 1. For x < 0: the sum of 1 / (x + k)^s over
// all integers k depends only on the remainder r of x; the terms with x + k < 0 are again a zeta function, zeta(s, 1 -
// x), and are subtracted.
inline float polygamma(float order, float x) {
    int n = order >= 1.0f && order < 1000.0f ? int(order) : 1;
    float sign = n % 2 == 0 ? -1.0f : 1.0f;
    if (!(x < 0.0f)) {
        return sign * scaled_zeta(n, metal::fabs(x));
    }
    float r = x - metal::rint(x);
    if (r == 0.0f) {
        return sign * INFINITY;
    }
    float below = factorial_power(n, r) + scaled_zeta(n, 1.0f + r);
    return sign * below + (scaled_zeta(n, 1.0f - r) - scaled_zeta(n, 1.0f - x));
}

}  // namespace orchard

#endif
