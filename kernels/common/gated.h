// Activations x S(x) and their derivatives for float32, where the gate S rises from 0 to 1 and S(-x) = 1 - S(x).
//
// With a = |x|, all results are computed from values at -a. x S(x) is -a S(-a) or a (1 - S(-a)). The derivative at x is
// w or 1 - w, where w = S(-a) - a S'(a) is the derivative at -a. This avoids cancellation far from 0, where S(-a) is an
// exponential. That exponential is fully accurate, although its exponent needs more digits than float32 has.
// native/cpu/elementwise/gated.h has other approximations, which are faster there.

#ifndef ORCHARD_COMMON_GATED_H
#define ORCHARD_COMMON_GATED_H

#include <metal_stdlib>

namespace orchard {

// 1 / x for x between 2^-126 and 2^126. The fast quotient has an error of at most 2.5 units in the last place there
// (MSL table 8.2). A Newton step squares its relative error, so that only the rounding errors of the step remain.
inline float reciprocal(float x) {
    const float r = metal::fast::divide(1.0f, x);
    return metal::fma(metal::fma(-x, r, 1.0f), r, r);
}

// S(-a), and the derivative of x S(x) at -a.
struct Tail {
    float share;
    float slope;
};

// e^-(high + low), where low is below the last place of high
inline float exp_of_negative(float high, float low) {
    float e = metal::precise::exp(-high);
    return metal::fma(-e, low, e);
}

// S is the normal distribution function: S(-a) = e^(-a^2 / 2) G(a), where G is smooth and falls slowly. G is a
// polynomial in t = 1 / (1 + 0.3 a), interpolated at Chebyshev points for a from 0 to 15.
struct NormalShare {
    static float end() { return 15.0f; }  // from here on S(-a) rounds to 0
    static float factor(float a) {        // G(a)
        float t = reciprocal(metal::fma(a, 0.3f, 1.0f));
        float g = -0.0209846701f;
        g = metal::fma(g, t, 0.114402115f);
        g = metal::fma(g, t, -0.232835487f);
        g = metal::fma(g, t, 0.197921649f);
        g = metal::fma(g, t, -0.0844812840f);
        g = metal::fma(g, t, 0.0988308415f);
        g = metal::fma(g, t, 0.0774857700f);
        g = metal::fma(g, t, 0.110423200f);
        g = metal::fma(g, t, 0.119550116f);
        g = metal::fma(g, t, 0.119687751f);
        return g * t;
    }
    static Tail tail(float a) {
        float square = a * a;
        float e = exp_of_negative(0.5f * square, 0.5f * metal::fma(a, a, -square));
        float g = factor(a);
        return {e * g, e * metal::fma(-a, 0.398942280f, g)};
    }
};

// S(a) = 1 / (1 + e^-v), where v is an odd function of a. With e = e^-v and s = S(a), S(-a) is e s, and S'(a) is e s^2
// v'.
inline Tail logistic_tail(float a, float e, float derivative) {
    float s = 1.0f / (1.0f + e);
    float share = e * s;
    return {share, share * (1.0f - a * s * derivative)};
}

// v = a
struct LogisticShare {
    static float end() { return 105.0f; }
    static Tail tail(float a) { return logistic_tail(a, metal::precise::exp(-a), 1.0f); }
};

// (1 + tanh u) / 2 is the logistic function of v = 2u: v = sqrt(8 / pi) (a + 0.044715 a^3), as a sum of two float32.
struct TanhShare {
    static float end() { return 11.0f; }
    static Tail tail(float a) {
        const float linear = 1.59576917f;
        const float linear_rest = -4.53406805e-08f;
        const float cubic = 0.0713548139f;
        const float cubic_rest = 2.39883247e-09f;
        float square = a * a;
        float square_rest = metal::fma(a, a, -square);
        float bend = cubic * square;
        float bend_rest = metal::fma(cubic, square, -bend) + cubic * square_rest + cubic_rest * square;
        float factor = linear + bend;
        float part = factor - linear;
        float factor_rest = (linear - (factor - part)) + (bend - part) + bend_rest + linear_rest;
        float v = a * factor;
        float v_rest = metal::fma(a, factor, -v) + a * factor_rest;
        return logistic_tail(a, exp_of_negative(v, v_rest), metal::fma(3.0f, bend, linear));
    }
};

template <typename Share> inline Tail tail_of(float x) {
    float a = metal::fabs(x);
    return Share::tail(a > Share::end() ? Share::end() : a);  // written so that NaN stays NaN
}

// S(x)
template <typename Share> inline float gate(float x) {
    float share = tail_of<Share>(x).share;
    return x < 0.0f ? share : 1.0f - share;
}

// An infinite x is multiplied only by a gate of 1, never by one of 0.
template <typename Share> inline float gated(float x) {
    float share = tail_of<Share>(x).share;
    return x < 0.0f ? (x < -Share::end() ? -Share::end() : x) * share : x * (1.0f - share);
}

template <typename Share> inline float gated_derivative(float x) {
    float slope = tail_of<Share>(x).slope;
    return x < 0.0f ? slope : 1.0f - slope;
}

}  // namespace orchard

#endif
