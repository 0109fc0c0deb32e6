// Activations x·S(x), where the share S rises from 0 to 1 and S(-x) = 1 - S(x), and their derivatives.
//
// With a = |x| everything comes from the small side: x·S(x) is -a·S(-a) or a·(1 - S(-a)), and the derivative at x is w or 1 - w, where w is
// the one at -a: w = S(-a) - a·S'(a). So nothing cancels far from 0, where S(-a) is an exponential: it has its whole accuracy, although
// its exponent needs more digits than a float32 has.
#pragma once

#include "math.h"

namespace orchard::ORCHARD_ISA {

// S(-a), and the derivative of x·S(x) at -a.
template <class Number> struct Tail {
  Number share, slope;
};

// A number as a sum of two float32, the second below the last place of the first.
struct Pair {
  float high, low;
};

inline float exp_of_negative(Pair x) {
  float e = exp(-x.high);
  return fused(-e, x.low, e);
}

// Where products are fused, what one rounds away is one operation more; else float64 has the room.
#if defined(__FMA__) || defined(__aarch64__)
inline Pair half_square(float a) {
  float square = a * a;
  return {0.5f * square, 0.5f * fused(a, a, -square)};
}
#else
inline Pair as_pair(double x) { return {float(x), float(x - double(float(x)))}; }
inline Pair half_square(float a) { return as_pair(0.5 * double(a) * double(a)); }
#endif

// S = Φ, the distribution function of the normal distribution. Φ(-a) = e^(-a²/2)·G(a), where G is smooth and falls slowly: a polynomial
// in t = 1/(1 + 0.3 a), the interpolant at Chebyshev's points from 0 to 15.
struct NormalShare {
  static constexpr float end = 15.0f, wide_end = 40.0f; // from there on S(-a) is 0
  static constexpr double density = 0.398942280401432677940; // φ(0) = 1/√(2π)

  static Tail<float> tail(float a) {
    float e = exp_of_negative(half_square(a)), t = 1.0f / fused(a, 0.3f, 1.0f);
    float g = t * polynomial(t, -0.0209846701f, 0.114402115f, -0.232835487f, 0.197921649f, -0.0844812840f, 0.0988308415f, 0.0774857700f,
                             0.110423200f, 0.119550116f, 0.119687751f);
    return {e * g, e * fused(-a, float(density), g)};
  }
  static Tail<double> tail(double a) {
    double share = 0.5 * std::erfc(a * 0.707106781186547524401);
    return {share, share - a * density * std::exp(-0.5 * a * a)};
  }
};

// S(a) = 1/(1 + e^(-v)) for a v that is odd in a: with e = e^(-v) and s = S(a), S(-a) is e·s, and S'(a) is e·s²·v'.
template <class Number> inline Tail<Number> logistic_tail(Number a, Number e, Number derivative) {
  Number s = Number(1) / (Number(1) + e), share = e * s;
  return {share, share * (Number(1) - a * s * derivative)};
}

// v = a
struct LogisticShare {
  static constexpr float end = 105.0f, wide_end = 750.0f;
  template <class Number> static Tail<Number> tail(Number a) { return logistic_tail(a, exp(-a), Number(1)); }
};

// (1 + tanh u)/2 is the logistic function of v = 2u: v = √(8/π)·(a + 0.044715·a³)
struct TanhShare {
  static constexpr float end = 11.0f, wide_end = 22.0f;
  static constexpr double linear = 1.59576912160573071176, cubic = linear * 0.044715;

  static Tail<float> tail(float a) {
    return logistic_tail(a, exp_of_negative(argument(a)), fused(a * a, float(3.0 * cubic), float(linear)));
  }
  static Tail<double> tail(double a) {
    return logistic_tail(a, std::exp(-a * (linear + cubic * a * a)), linear + 3.0 * cubic * a * a);
  }

private:
#if defined(__FMA__) || defined(__aarch64__)
  // Each product and each sum with what it rounds away.
  static Pair argument(float a) {
    constexpr float first = float(linear), third = float(cubic), first_rest = float(linear - first), third_rest = float(cubic - third);
    float square = a * a, square_rest = fused(a, a, -square);
    float bend = third * square, bend_rest = fused(third, square, -bend) + fused(third, square_rest, third_rest * square);
    float factor = first + bend, part = factor - first;
    float factor_rest = (first - (factor - part)) + (bend - part) + (bend_rest + first_rest);
    float v = a * factor;
    return {v, fused(a, factor_rest, fused(a, factor, -v))};
  }
#else
  static Pair argument(float a) { return as_pair(double(a) * (linear + cubic * double(a) * double(a))); }
#endif
};

template <class Share> inline Tail<float> tail_of(float x) { return Share::tail(at_most(absolute(x), Share::end)); }
template <class Share> inline Tail<double> tail_of(double x) {
  double a = std::fabs(x);
  return Share::tail(a > Share::wide_end ? double(Share::wide_end) : a);
}

// The infinite x takes part where its share is 1 only.
template <class Share> inline float gated(float x) {
  float share = tail_of<Share>(x).share;
  return x < 0.0f ? at_least(x, -Share::end) * share : x * (1.0f - share);
}
template <class Share> inline double gated(double x) {
  double share = tail_of<Share>(x).share;
  return x < 0.0 ? (x < -Share::wide_end ? double(-Share::wide_end) : x) * share : x * (1.0 - share);
}

template <class Share, class Number> inline Number gated_derivative(Number x) {
  Number slope = tail_of<Share>(x).slope;
  return x < Number(0) ? slope : Number(1) - slope;
}

} // namespace orchard::ORCHARD_ISA
