// Activations and their derivatives, for every float type in which a backend computes. Activations x S(x) with a gate S
// have different approximations of S: native/cpu/elementwise/gated.h and common/gated.h.

#ifndef ORCHARD_FORMULAS_ACTIVATIONS_H
#define ORCHARD_FORMULAS_ACTIVATIONS_H

namespace ORCHARD_FORMULAS {

// min(max(x + 3, 0), 6) / 6
template <typename T> inline T hardsigmoid(T x) { return bounded(x + T(3), T(0), T(6)) / T(6); }

// The derivative of x hardsigmoid(x), which is 0 up to -3 and 1 from 3 on, multiplied by g.
template <typename T> inline T hardswish_gradient(T g, T x) {
    T above = x < T(3) ? g * ((x + T(1.5)) / T(3)) : g;
    return x <= T(-3) ? T(0) : above;
}

// x tanh(ln(1 + w)) with w = e^x. The hyperbolic tangent is n / (n + 2) with n = w (w + 2); for w > 1 both are divided
// by w^2.
template <typename T> inline T mish(T x) {
    T e = exp(-fabs(x));
    T n = x < T(0) ? e * (e + T(2)) : T(1) + T(2) * e;
    return x * (n / (n + (x < T(0) ? T(2) : T(2) * e * e)));
}

// min(x, 0) - ln(1 + e^-|x|)
template <typename T> inline T log_sigmoid(T x) {
    return fused_half_lowered(lifted_log_of_one_and_exp(fabs(x)), T(-1), at_most(x, T(0)));
}

// x - tanh x. For |x| ≤ 2 by Lambert's continued fraction, tanh x = x / (1 + k) with k = x^2 / (3 + x^2 / (5 + ...));
// the result is x k / (1 + k), without cancellation. Source: NIST Digital Library of Mathematical Functions, 4.39.1.
template <typename T> inline T tanhshrink(T x) {
    const int last = sizeof(T) == sizeof(float) ? 13 : 25;
    T s = x * x;
    T k = T(0);
    for (int odd = last; odd >= 3; odd -= 2) k = s / (T(odd) + k);
    return fabs(x) < T(2) ? x * k / (T(1) + k) : x - tanh(x);
}

// ln(1 + e^(beta x)) / beta; above the threshold x itself. With s = beta x it is computed as (max(s, 0) + ln(1 +
// e^-|s|)) / beta.
template <typename T> inline T softplus(T x, T beta, T threshold) {
    T scaled_x = x * beta;
    T rest = lifted_log_of_one_and_exp(fabs(scaled_x)) / beta;
    T smooth = fused_half_lowered(rest, T(1), scaled_x <= T(0) ? T(0) : x);
    return scaled_x > threshold ? x : smooth;
}

// x if x > 0, else alpha (e^(rate x) - 1)
template <typename T> inline T elu(T x, T alpha, T rate) { return x > T(0) ? x : alpha * expm1(rate * x); }

// min(max(x, least), most): `most` if least > most, NaN if any operand is NaN, and x itself if it equals a bound.
template <typename T> inline T clamped(T x, T least, T most) {
    T result = at_most(at_least(x, least), most);
    return (is_nan(least) | is_nan(most)) ? least + most : result;
}

// Interpolates from the nearer end, so that both ends are exact.
template <typename T> inline T interpolated(T a, T b, T weight) {
    T difference = b - a;
    return fabs(weight) < T(0.5) ? a + weight * difference : b - difference * (T(1) - weight);
}

}  // namespace ORCHARD_FORMULAS

#endif
