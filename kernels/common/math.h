// float32 functions that Metal Shading Language lacks or defines differently.
//
// Polynomials are Chebyshev interpolants on a short interval, with coefficients rounded to float32. Errors are within 3
// units in the last place.

#ifndef ORCHARD_COMMON_MATH_H
#define ORCHARD_COMMON_MATH_H

#include <metal_stdlib>

namespace orchard {

template <typename Number> inline bool is_nan(Number x) { return x != x; }

// e^x - 1 = 2^n (e^r - 1) + (2^n - 1) with x = n ln 2 + r, computed as half of it, since 2^128 is out of range
inline float expm1(float x) {
    float limited = x > 89.0f ? 89.0f : x < -18.0f ? -18.0f : x;
    float n = metal::rint(limited * 1.44269504f);
    float r = metal::fma(n, 2.12194440e-4f, metal::fma(n, -0.693359375f, limited));  // ln 2, split into two parts
    float p = 0.000198909882f;
    p = metal::fma(p, r, 0.00139336474f);
    p = metal::fma(p, r, 0.00833331048f);
    p = metal::fma(p, r, 0.0416664667f);
    p = metal::fma(p, r, 0.166666672f);
    p = metal::fma(p, r, 0.5f);
    p = metal::fma(p * r, r, r);
    float half_power = metal::ldexp(1.0f, int(is_nan(n) ? 0.0f : n) - 1);
    float result = 2.0f * metal::fma(half_power, p, half_power - 0.5f);
    return metal::fabs(x) < 1e-8f ? x : result;
}

// ln u · x / (u - 1), where u is 1 + x rounded: the quotient compensates the rounding error.
// Source: Goldberg, "What every computer scientist should know about floating-point arithmetic", theorem 4.
inline float log1p(float x) {
    float u = 1.0f + x;
    float corrected = metal::precise::log(u) * (x / (u - 1.0f));
    return u == 1.0f || x == INFINITY ? x : corrected;
}

// e / (1 + e) with e = e^-|x|, which can't overflow
inline float sigmoid(float x) {
    float e = metal::precise::exp(-metal::fabs(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

// x tanh(ln(1 + w)) with w = e^x. The hyperbolic tangent is n / (n + 2) with n = w (w + 2); for w > 1 both are divided
// by w^2.
inline float mish(float x) {
    float e = metal::precise::exp(-metal::fabs(x));
    float n = x < 0.0f ? e * (e + 2.0f) : 1.0f + 2.0f * e;
    return x * (n / (n + (x < 0.0f ? 2.0f : 2.0f * e * e)));
}

inline float log_sigmoid(float x) {
    float below = x < 0.0f || is_nan(x) ? x : 0.0f;
    return below - log1p(metal::precise::exp(-metal::fabs(x)));
}

// x - tanh x. For |x| <= 2 by Lambert's continued fraction, tanh x = x / (1 + k) with k = x^2 / (3 + x^2 / (5 + ...));
// the result is x k / (1 + k), without cancellation. Source: NIST Digital Library of Mathematical Functions, 4.39.1.
inline float tanhshrink(float x) {
    if (!(metal::fabs(x) < 2.0f)) {
        return x - metal::precise::tanh(x);
    }
    float k = 0.0f;
    for (float odd = 13.0f; odd >= 3.0f; odd -= 2.0f) {
        k = x * x / (odd + k);
    }
    return x * k / (1.0f + k);
}

// x + x P(x^2) for |x| <= 1, else 1 - e^Q(|x|), where Q approximates ln erfc
inline float erf(float x) {
    float a = metal::fabs(x);
    if (a < 1.0f) {
        float s = a * a;
        float p = 0.0000787587487f;
        p = metal::fma(p, s, -0.000801686430f);
        p = metal::fma(p, s, 0.00518908724f);
        p = metal::fma(p, s, -0.0268542115f);
        p = metal::fma(p, s, 0.112835944f);
        p = metal::fma(p, s, -0.376126260f);
        p = metal::fma(p, s, 0.128379166f);
        return metal::fma(x, p, x);
    }
    if (is_nan(x)) {
        return x;
    }
    float t = a > 4.0f ? 4.0f : a;
    float q = 0.00000164356970f;
    q = metal::fma(q, t, -0.0000461779127f);
    q = metal::fma(q, t, 0.000597743492f);
    q = metal::fma(q, t, -0.00476357527f);
    q = metal::fma(q, t, 0.0264310185f);
    q = metal::fma(q, t, -0.110094480f);
    q = metal::fma(q, t, -0.631814539f);
    q = metal::fma(q, t, -0.130237609f);
    q = metal::fma(q, t, 0.000320441526f);
    return metal::copysign(1.0f - metal::precise::exp(q - t), x);
}

// The remainder that has the sign of the divisor.
inline float remainder(float a, float b) {
    float rest = metal::precise::fmod(a, b);
    return rest != 0.0f && (rest < 0.0f) != (b < 0.0f) ? rest + b : rest;
}

// (a - a mod b) / b, which is an integer except for rounding error; a / b could round up to the next integer.
inline float floor_divide(float a, float b) {
    if (b == 0.0f) {
        return a / b;
    }
    float rest = metal::precise::fmod(a, b);
    float quotient = metal::rint((a - rest) / b);
    // From 2^22 on, the two rounding errors together may have reached the next integer, which is corrected. From 2^24
    // on, float32 has no fractions.
    if (metal::fabs(quotient) >= 4194304.0f && metal::fabs(quotient) < 16777216.0f) {
        quotient += metal::rint((metal::fma(-quotient, b, a) - rest) / b);
    }
    if (rest != 0.0f && (rest < 0.0f) != (b < 0.0f)) {
        quotient -= 1.0f;
    }
    return quotient == 0.0f ? metal::copysign(0.0f, a / b) : quotient;
}

}  // namespace orchard

#endif
