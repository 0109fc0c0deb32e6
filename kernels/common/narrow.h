// Activations whose results are rounded to 16 bits: float16 and bfloat16. A relative error of 2^-15 adds one sixteenth
// of float16's last place to the rounding error, so a fast exponential and a fast quotient are accurate enough.
//
// Error bounds from MSL table 8.2 (fast math), in units of float32's last place: at most 3 + |2 y| for exp2(y), and at
// most 2.5 for a quotient whose divisor is between 2^-126 and 2^126. For results that float16 can represent, y is at
// least -31 here, so the exponential's relative error is at most 2^-16, including the rounding of y. For bfloat16, y is
// at least -128 and the relative error at most 2^-15, while its rounding error is 2^-9. Fast functions leave NaN
// undefined, so NaN is handled beforehand.

#ifndef ORCHARD_COMMON_NARROW_H
#define ORCHARD_COMMON_NARROW_H

#include "common/gated.h"
#include "common/math.h"

namespace orchard {
namespace narrow {

inline float reciprocal(float x) { return metal::fast::divide(1.0f, x); }

// e / (1 + e) with e = e^-|x|, which can't overflow
inline float sigmoid(float x) {
    const float a = metal::min(metal::fabs(x), LogisticShare::end());
    const float e = metal::fast::exp2(a * -1.44269504f);
    const float share = reciprocal(1.0f + e);
    return is_nan(x) ? x : x < 0.0f ? e * share : share;
}

// x / (1 + e^-v), where v is an odd function of x. `v` is computed from |x| limited to `end`; beyond it, x < 0 gives 0.
// The exponential is computed as a square, since it may be subnormal when its product with x is not.
inline float logistic_gate(float x, float v, float end) {
    const float root = metal::fast::exp2(v * -0.721347520f);
    const float share = reciprocal(metal::fma(root, root, 1.0f));
    return is_nan(x) ? x : x < 0.0f ? metal::max(x, -end) * root * (root * share) : x * share;
}

inline float silu(float x) {
    const float a = metal::min(metal::fabs(x), LogisticShare::end());
    return logistic_gate(x, a, LogisticShare::end());
}

inline float gelu_tanh(float x) {
    const float a = metal::min(metal::fabs(x), TanhShare::end());
    return logistic_gate(x, a * metal::fma(a * a, 0.0713548139f, 1.59576917f), TanhShare::end());
}

// Like NormalShare, with fewer terms: the polynomial of degree 5 with the smallest maximum relative error on 0 ... 15,
// which is 2^-16.6.
inline float gelu(float x) {
    const float end = NormalShare::end();
    const float a = metal::min(metal::fabs(x), end);
    const float t = reciprocal(metal::fma(a, 0.3f, 1.0f));
    float g = -0.0763167590f;
    g = metal::fma(g, t, 0.213704258f);
    g = metal::fma(g, t, -0.0143028442f);
    g = metal::fma(g, t, 0.142784730f);
    g = metal::fma(g, t, 0.114093676f);
    g = metal::fma(g, t, 0.120041713f);
    const float share = metal::fast::exp2(a * a * -0.721347520f) * (g * t);
    return is_nan(x) ? x : x < 0.0f ? metal::max(x, -end) * share : x * (1.0f - share);
}

}  // namespace narrow
}  // namespace orchard

#endif
