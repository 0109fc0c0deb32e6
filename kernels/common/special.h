// float32 functions that Metal Shading Language lacks: sinc, the complement and the inverse of the error function, and
// functions of two numbers. native/cpu/elementwise/special.h has the same formulas. Errors are within 4 units in the
// last place (erfc: 6).

#ifndef ORCHARD_COMMON_SPECIAL_H
#define ORCHARD_COMMON_SPECIAL_H

#include <metal_stdlib>

#include "common/gated.h"
#include "common/math.h"

namespace orchard {

// sin(pi r) / (pi r) for |r| <= 1/2, interpolated in r^2 at Chebyshev points.
inline float sine_quotient(float r) {
    float z = r * r;
    float p = -0.00223717862f;
    p = metal::fma(p, z, 0.0261174385f);
    p = metal::fma(p, z, -0.190747902f);
    p = metal::fma(p, z, 0.811742187f);
    p = metal::fma(p, z, -1.64493406f);
    p = metal::fma(p, z, 1.0f);
    return p;
}

// sin(pi x) / (pi x) = ±sin(pi r) / (pi r) * r / x, where r is x minus the nearest integer n; 1 at 0.
inline float sinc(float x) {
    float a = metal::fabs(x);
    if (a == 0.0f) {
        return 1.0f;
    }
    float n = metal::rint(a);
    float value = (a - n) / a * sine_quotient(a - n);
    return a < 8388608.0f && (int(n) & 1) != 0 ? -value : value;
}

// erfc(a) = 2 e^(-a^2) G(sqrt(2) a) for a >= 0, where G is smooth (common/gated.h). It is 0 from 10.7 on.
inline float erfc(float x) {
    float a = metal::fabs(x);
    a = a > 10.7f ? 10.7f : a;
    float square = a * a;
    float e = exp_of_negative(square, metal::fma(a, a, -square));
    float tail = 2.0f * e * NormalShare::factor(1.41421356f * a);
    return x < 0.0f ? 2.0f - tail : tail;
}

// x P(w) with w = -ln(1 - x^2): a polynomial in w for w <= 5, and in sqrt(w) beyond. Infinite at 1 and -1, NaN for |x|
// > 1.
// Source: M. Giles, "Approximating the erfinv function", GPU Computing Gems, 2012. The polynomials here have one degree
// more.
inline float erfinv(float x) {
    if (metal::fabs(x) == 1.0f) {
        return x * INFINITY;
    }
    float w = -metal::precise::log((1.0f - x) * (1.0f + x));
    if (w < 5.0f) {
        float s = w - 2.5f;
        float p = -8.93192631e-09f;
        p = metal::fma(p, s, 2.33359678e-08f);
        p = metal::fma(p, s, 4.68131361e-07f);
        p = metal::fma(p, s, -3.46398519e-06f);
        p = metal::fma(p, s, -4.9724199e-06f);
        p = metal::fma(p, s, 0.000218349393f);
        p = metal::fma(p, s, -0.00125272642f);
        p = metal::fma(p, s, -0.00417739293f);
        p = metal::fma(p, s, 0.24664028f);
        p = metal::fma(p, s, 1.50140941f);
        return x * p;
    }
    float t = metal::precise::sqrt(w) - 3.0f;
    float p = 0.000120385863f;
    p = metal::fma(p, t, -0.000313715573f);
    p = metal::fma(p, t, -6.2952633e-05f);
    p = metal::fma(p, t, 0.00148983696f);
    p = metal::fma(p, t, -0.00359459501f);
    p = metal::fma(p, t, 0.00568534806f);
    p = metal::fma(p, t, -0.00763777411f);
    p = metal::fma(p, t, 0.00944545027f);
    p = metal::fma(p, t, 1.00167501f);
    p = metal::fma(p, t, 2.83297682f);
    return x * p;
}

// The larger side times sqrt(1 + q^2), where q is the smaller side divided by the larger one. Infinite if one side is
// infinite, even if the other is NaN.
inline float hypot(float x, float y) {
    float a = metal::fabs(x);
    float b = metal::fabs(y);
    if (a == INFINITY || b == INFINITY) {
        return INFINITY;
    }
    float larger = a > b || is_nan(a) ? a : b;
    float smaller = a > b || is_nan(a) ? b : a;
    if (larger == 0.0f) {
        return smaller;
    }
    float q = smaller / larger;
    return larger * metal::precise::sqrt(metal::fma(q, q, 1.0f));
}

// ln(e^a + e^b), computed so that no exponential overflows.
inline float logaddexp(float a, float b) {
    float larger = a > b || is_nan(a) ? a : b;
    float distance = a == b ? 0.0f : metal::fabs(a - b);  // infinity minus infinity would be NaN
    return larger + log1p(metal::precise::exp(-distance));
}

// log2(2^a + 2^b), computed likewise.
inline float logaddexp2(float a, float b) {
    float larger = a > b || is_nan(a) ? a : b;
    float distance = a == b ? 0.0f : metal::fabs(a - b);
    return larger + log1p(metal::precise::exp2(-distance)) * 1.44269504f;
}

// a ln b; 0 if a is 0, unless b is NaN.
inline float xlogy(float a, float b) { return a == 0.0f && !is_nan(b) ? 0.0f : a * metal::precise::log(b); }

}  // namespace orchard

#endif
