// The logarithm of the gamma function and its derivatives for float32. native/cpu/elementwise/gamma.h has the same
// formulas, but computes polygamma in float64.
//
// On 1 ... 3, lgamma and digamma are computed as the product of a factor that has their zeros and a smooth quotient,
// which is interpolated at Chebyshev points. Arguments from 3 to 8 are reduced to this range by a recurrence, and
// arguments below 1 are raised to it. From 8 on asymptotic series are used, and for negative arguments the reflection
// formulas.
// Source: NIST Digital Library of Mathematical Functions, 5.5, 5.11 and 25.11. Errors are within 4 units in the last
// place of the largest term.

#ifndef ORCHARD_COMMON_GAMMA_H
#define ORCHARD_COMMON_GAMMA_H

#include <metal_stdlib>

#include "common/special.h"

namespace orchard {

// x reduced to 1 ... 3 by subtracting ones, which is exact. `product` is the product of the values in between, and
// `sum` is the sum of their reciprocals times that product.
struct ReducedToThree {
    float x;
    float product;
    float sum;
};

inline ReducedToThree reduced_to_three(float x) {
    ReducedToThree y = {x, 1.0f, 0.0f};
    for (int step = 0; step < 5 && y.x >= 3.0f; step++) {
        y.x -= 1.0f;
        y.sum = y.sum * y.x + y.product;
        y.product *= y.x;
    }
    return y;
}

// ln gamma(x) / ((x - 1) (x - 2)) for 1 <= x <= 3, as a function of t = x - 2.
inline float log_gamma_quotient(float t) {
    float p = 1.8091514e-05f;
    p = metal::fma(p, t, -3.85804742e-05f);
    p = metal::fma(p, t, 2.38816065e-05f);
    p = metal::fma(p, t, -5.28397359e-05f);
    p = metal::fma(p, t, 0.000191739688f);
    p = metal::fma(p, t, -0.00042515414f);
    p = metal::fma(p, t, 0.000912594493f);
    p = metal::fma(p, t, -0.00210224232f);
    p = metal::fma(p, t, 0.00499899592f);
    p = metal::fma(p, t, -0.0123849437f);
    p = metal::fma(p, t, 0.0329649895f);
    p = metal::fma(p, t, -0.100317277f);
    p = metal::fma(p, t, 0.422784328f);
    return p;
}

// For x >= 0. Below 1 it is computed as ln gamma(x + 1) - ln x.
inline float log_gamma_of_positive(float x) {
    if (x >= 8.0f) {
        float r = 1.0f / x;
        float z = r * r;
        float p = metal::fma(metal::fma(0.000793650794f, z, -0.00277777778f), z, 0.0833333333f);
        return metal::fma(x - 0.5f, metal::precise::log(x) - 1.0f, metal::fma(r, p, 0.418938533f));
    }
    if (x < 1.0f) {
        float t = x - 1.0f;
        return x * t * log_gamma_quotient(t) - metal::precise::log(x);
    }
    ReducedToThree y = reduced_to_three(x);
    float t = y.x - 2.0f;
    return (y.x - 1.0f) * t * log_gamma_quotient(t) + metal::precise::log(y.product);
}

// For x < 0, with a = -x: -ln(|sin(pi a)| / pi) - ln gamma(1 + a). It is infinite at integers and at -infinity.
inline float lgamma(float x) {
    if (!(x < 0.0f)) {
        return log_gamma_of_positive(x);
    }
    float r = x - metal::rint(x);
    if (r == 0.0f || x == -INFINITY) {
        return INFINITY;
    }
    return -metal::precise::log(metal::fabs(r) * sine_quotient(r)) - log_gamma_of_positive(1.0f - x);
}

// psi(x) / (x - root) for 1 <= x <= 3, as a function of t = x - 2. The root is stored as the sum of two numbers.
inline float digamma_quotient(float t) {
    float p = -0.000110363042f;
    p = metal::fma(p, t, 0.000220856396f);
    p = metal::fma(p, t, -5.58361135e-05f);
    p = metal::fma(p, t, 0.000112410227f);
    p = metal::fma(p, t, -0.000758196984f);
    p = metal::fma(p, t, 0.00152395468f);
    p = metal::fma(p, t, -0.00270920573f);
    p = metal::fma(p, t, 0.00549150351f);
    p = metal::fma(p, t, -0.0113436282f);
    p = metal::fma(p, t, 0.0234577022f);
    p = metal::fma(p, t, -0.0495507047f);
    p = metal::fma(p, t, 0.10899926f);
    p = metal::fma(p, t, -0.260738969f);
    p = metal::fma(p, t, 0.785307527f);
    return p;
}

// For x >= 0. Below 1 it is computed as psi(x + 1) - 1 / x.
inline float digamma_of_positive(float x) {
    const float root = 1.46163213f;
    const float root_remainder = 1.24381499e-08f;
    if (x >= 8.0f) {
        float r = 1.0f / x;
        float z = r * r;
        float p = metal::fma(metal::fma(0.00396825397f, z, -0.00833333333f), z, 0.0833333333f);
        return metal::precise::log(x) - r * metal::fma(r, p, 0.5f);
    }
    if (x < 1.0f) {
        return (x - (root - 1.0f) - root_remainder) * digamma_quotient(x - 1.0f) - 1.0f / x;
    }
    ReducedToThree y = reduced_to_three(x);
    return (y.x - root - root_remainder) * digamma_quotient(y.x - 2.0f) + y.sum / y.product;
}

// pi cot(pi r) = (1 - 4 r^2) C(r^2) / r, where C is interpolated at Chebyshev points.
inline float pi_cotangent(float r) {
    float z = r * r;
    float c = 1.75992048f;
    c = metal::fma(c, z, 0.220113218f);
    c = metal::fma(c, z, 0.749854326f);
    c = metal::fma(c, z, 0.661266685f);
    c = metal::fma(c, z, 0.676204801f);
    c = metal::fma(c, z, 0.710126758f);
    c = metal::fma(c, z, 1.0f);
    return metal::fma(-2.0f, r, 1.0f) * metal::fma(2.0f, r, 1.0f) * c / r;
}

// For x < 0: psi(1 - x) - pi cot(pi x). NaN at integers and at -infinity.
inline float digamma(float x) {
    if (!(x < 0.0f)) {
        return digamma_of_positive(x);
    }
    float r = x - metal::rint(x);
    return r == 0.0f ? NAN : digamma_of_positive(1.0f - x) - pi_cotangent(r);
}

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
