// Activations with longer formulas, without branches.
#pragma once

#include "softplus.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {

// x·tanh(ln(1 + w)) with w = e^x. The hyperbolic tangent is n/(n + 2) with n = w·(w + 2); for w > 1 both are divided by
// w².
template <class T> inline T mish(T x) {
  T e = exp(-T(std::fabs(x)));
  T n = x < T(0) ? e * (e + T(2)) : T(1) + T(2) * e;
  return x * (n / (n + (x < T(0) ? T(2) : T(2) * e * e)));
}

// min(x, 0) - ln(1 + e^-|x|)
template <class T> inline T log_sigmoid(T x) {
  return fused(lifted_log_of_one_and_exp(T(std::fabs(x))), -half_lowered<T>, std::min(x, T(0)));
}

// x - tanh x. For |x| ≤ 2 by Lambert's continued fraction, tanh x = x/(1 + k) with k = x²/(3 + x²/(5 + …)); the result
// is x·k/(1 + k), without cancellation. Source: NIST Digital Library of Mathematical Functions, 4.39.1.
template <class T> inline T tanhshrink(T x) {
  constexpr int last = std::is_same_v<T, float> ? 13 : 25;
  T s = x * x, k = T(0);
  for (int odd = last; odd >= 3; odd -= 2) k = s / (T(odd) + k);
  return std::fabs(x) < T(2) ? x * k / (T(1) + k) : x - tanh(x);
}

} // namespace orchard::ORCHARD_ISA
