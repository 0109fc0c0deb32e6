// float32 functions that Metal Shading Language lacks or defines differently: the functions of formulas/elementary.h
// and formulas/activations.h, which C++ computes in the same way, and erf, which C++ computes differently.
//
// Polynomials are Chebyshev interpolants on a short interval, with coefficients rounded to float32. Errors are within 3
// units in the last place.

#ifndef ORCHARD_COMMON_MATH_H
#define ORCHARD_COMMON_MATH_H

#include <metal_stdlib>

#include "common/functions.h"
#include "formulas/elementary.h"

namespace orchard {

// ln(1 + e^-a) for a ≥ 0. The C++ version is scaled (native/cpu/elementwise/softplus.h), and fused_half_lowered removes
// the scale.
inline float lifted_log_of_one_and_exp(float a) { return log1p(exp(-a)); }
inline float fused_half_lowered(float a, float factor, float addend) { return fused(a, factor, addend); }

}  // namespace orchard

#include "formulas/activations.h"

namespace orchard {

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

}  // namespace orchard

#endif
