// ln(1 + e^-a) for a ≥ 0, used by softplus and binary cross entropy. With t = e^-a it is t·(1 + t·P(t)), where P
// interpolates at Chebyshev points from 0 to 1.
#pragma once

#include "lifted.h"

namespace orchard::ORCHARD_ISA {

// The factor that removes the logarithm's scale, which is the square root of the exponential's scale (lifted.h): this
// leaves room to divide by a small number.
template <class Number> constexpr Number half_lowered = 1;
template <> inline constexpr float half_lowered<float> = 0x1p-32f;
template <class T> inline T fused_half_lowered(T a, T factor, T addend) {
  return fused(a, factor * half_lowered<T>, addend);
}

inline float lifted_log_of_one_and_exp(float a) {
  float e = lifted_exp_of_negative(at_most(a, 110.0f)), t = e * lowered<float>;
  float p = polynomial(t, 0.00280164205f, -0.0171842668f, 0.0493099727f, -0.0913941413f, 0.130333647f, -0.163651526f,
                       0.19956708f, -0.249967605f, 0.33333236f, -0.5f);
  return e * half_lowered<float> * fused(t, p, 1.0f);
}
inline double lifted_log_of_one_and_exp(double a) { return log1p(exp(-a)); }

} // namespace orchard::ORCHARD_ISA
