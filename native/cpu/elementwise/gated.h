// Activations x·S(x) and their derivatives, where the gate S rises from 0 to 1 and S(-x) = 1 - S(x).
//
// With a = |x|, both are computed from values at -a. x·S(x) is -a·S(-a) or a·(1 - S(-a)). The derivative at x is w or 1
// - w, where w = S(-a) - a·S'(a) is the derivative at -a. This avoids cancellation far from 0, where S(-a) is an
// exponential. That exponential is fully accurate, although its exponent needs more digits than float32 has.
#pragma once

#include "lifted.h"
#include "wide_functions.h"

namespace orchard::ORCHARD_ISA {

// S(-a), and the derivative of x·S(x) at -a; both scaled by 2^64 (lifted.h).
template <class Number> struct Tail {
  Number share, slope;
};

// S = Φ, the normal distribution function. Φ(-a) = e^(-a²/2)·G(a), where G is smooth and falls slowly. G is
// approximated for 0 ≤ a ≤ 15 by a rational function that interpolates it at the Chebyshev points of 1/(1 + 0.3 a).
struct NormalShare {
  template <class Number>
  static constexpr Number end = std::is_same_v<Number, float> ? 15 : 40; // from here on S(-a) rounds to 0
  static constexpr double density = 0.398942280401432677940;             // φ(0) = 1/√(2π)

  // G(a)
  static float factor(float a) {
    float above = polynomial(a, 0.0042602038f, 0.0415848531f, 0.186025634f, 0.442005664f, 0.5f);
    float below = polynomial(a, 0.0106786499f, 0.104243211f, 0.47684449f, 1.21400464f, 1.68189633f, 1.0f);
    return above / below;
  }
  static Tail<float> tail(float a) {
    float e = exponential(a), g = factor(a);
    return {e * g, e * fused(-a, float(density), g)};
  }
  static Tail<double> tail(double a) {
    double share = 0.5 * erfc(a * 0.707106781186547524401);
    return {share, share - a * density * exp(-0.5 * a * a)};
  }

private:
  // e^(-a²/2). The square needs more digits than float32 has, so it is computed with fused multiply-add or in float64.
  static float exponential(float a) {
    float shifted = fused(a * a, -0.5f * log2_e, lifting_rounder), n = shifted - lifting_rounder;
#if defined(__FMA__) || defined(__aarch64__)
    float r = 0.5f * fused(n, -2.0f * ln2_low, fused(-a, a, n * (-2.0f * ln2_high)));
#else
    float r = float(-0.5 * double(a) * double(a) - double(n) * 0.693147180559945309417);
#endif
    return lifted_exp(r, shifted);
  }
};

// S(a) = 1/(1 + e^(-v)), where v is an odd function of a. Then S(-a) = e^(-v)/(1 + e^(-v)), and S'(a) = S(-a)·S(a)·v'.
template <class Number> inline Tail<Number> logistic_tail(Number a, Number e, Number derivative) {
  Number share = e / fused(e, lowered<Number>, Number(1)), other = fused(-share, lowered<Number>, Number(1));
  return {share, share * fused(-a * derivative, other, Number(1))};
}

// v = a
struct LogisticShare {
  template <class Number> static constexpr Number end = std::is_same_v<Number, float> ? 110 : 750;
  template <class Number> static Tail<Number> tail(Number a) {
    return logistic_tail(a, lifted_exp_of_negative(a), Number(1));
  }
};

// (1 + tanh u)/2 is the logistic function of v = 2u: v = √(8/π)·(a + 0.044715·a³)
struct TanhShare {
  template <class Number> static constexpr Number end = std::is_same_v<Number, float> ? 11 : 22;
  static constexpr double linear = 1.59576912160573071176, cubic = linear * 0.044715;

  static Tail<float> tail(float a) {
    return logistic_tail(a, exponential(a), fused(a * a, float(3.0 * cubic), float(linear)));
  }
  static Tail<double> tail(double a) {
    return logistic_tail(a, exp(-a * (linear + cubic * a * a)), linear + 3.0 * cubic * a * a);
  }

private:
  // v = `cubic`·y with y = a·(a² + 1/0.044715). `step` is ln 2 in units of y, split into two parts: the product of n
  // and the first part is exact.
  static constexpr double offset = 1.0 / 0.044715, step = 9.71409102802369609562;
  static constexpr float step_high = 9.7138671875f, step_low = float(step - step_high);

  // e^(-v); v needs more digits than float32 has.
  static float exponential(float a) {
#if defined(__FMA__) || defined(__aarch64__)
    // Adding 256 rounds the sum to a multiple of 2^-15, so the subtraction is exact; `rest` is the rounded-off part.
    constexpr float offset_high = 22.36376953125f, offset_low = float(offset - offset_high);
    float sum = fused(a, a, 256.0f + offset_high) - 256.0f, rest = fused(a, a, offset_high - sum) + offset_low;
    float shifted = fused(a * sum, float(-1.0 / step), lifting_rounder), n = shifted - lifting_rounder;
    float r = fused(-a, rest, fused(n, -step_low, fused(-a, sum, n * -step_high)));
#else
    double y = double(a) * (double(a) * double(a) + offset);
    float shifted = float(y) * float(-1.0 / step) + lifting_rounder, n = shifted - lifting_rounder;
    float r = float(-y - double(n) * step);
#endif
    return lifted_exp(r * float(cubic), shifted);
  }
};

template <class Number> inline Number magnitude_up_to(Number x, Number most) {
  Number a = std::fabs(x);
  return most < a ? most : a; // written so that NaN stays NaN
}

// S(x) is S(-a) or 1 - S(-a).
template <class Share, class Number> inline Number gate(Number x) {
  Number share = Share::tail(magnitude_up_to(x, Share::template end<Number>)).share;
  return fused(share, x < Number(0) ? lowered<Number> : -lowered<Number>, x < Number(0) ? Number(0) : Number(1));
}

// max(x, 0) - a·S(-a), which holds for both signs of x.
template <class Share, class Number> inline Number gated(Number x) {
  Number a = magnitude_up_to(x, Share::template end<Number>);
  return fused(a * Share::tail(a).share, -lowered<Number>, x < Number(0) ? Number(0) : x);
}

template <class Share, class Number> inline Number gated_derivative(Number x) {
  Number slope = Share::tail(magnitude_up_to(x, Share::template end<Number>)).slope;
  return fused(slope, x < Number(0) ? lowered<Number> : -lowered<Number>, x < Number(0) ? Number(0) : Number(1));
}

} // namespace orchard::ORCHARD_ISA
