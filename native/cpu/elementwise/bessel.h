// The modified Bessel functions of the first kind of orders 0 and 1, for float32 and float64, without branches: the
// power series up to `far`, and Hankel's asymptotic series beyond. All terms of the power series have the same sign;
// the omitted terms of Hankel's series are below the rounding error. Errors are within 6 units in the last place.
// Source: NIST Digital Library of Mathematical Functions, 10.25.2 and 10.40.1.
#pragma once

#include "math.h"

#include <utility>

namespace orchard::ORCHARD_ISA {

// The number of terms of each series, the argument from which Hankel's series is used, and the argument from which the
// result is infinite.
template <class T> struct BesselRange;
template <> struct BesselRange<float> {
  static constexpr int near_terms = 22, far_terms = 12;
  static constexpr float far = 12.0f, infinite = 100.0f;
};
template <> struct BesselRange<double> {
  static constexpr int near_terms = 36, far_terms = 30;
  static constexpr double far = 20.0, infinite = 730.0;
};

// Σ t^k / (k! (k + order)!), summed from the last term to the first. `below` counts from 0.
template <int order, class T, int... below> inline T bessel_near(T t, std::integer_sequence<int, below...>) {
  constexpr int last = int(sizeof...(below));
  T sum = T(1);
  ((sum = fused(sum, t * T(1.0 / ((last - below) * (last - below + order))), T(1))), ...);
  return sum;
}

// Σ of the products of ((2k - 1)^2 - 4 order^2) / (8 k x), summed from the last term to the first.
template <int order, class T, int... below> inline T bessel_far(T reciprocal, std::integer_sequence<int, below...>) {
  constexpr int last = int(sizeof...(below));
  T sum = T(1);
  ((sum = fused(sum,
                reciprocal * T(double((2 * (last - below) - 1) * (2 * (last - below) - 1) - 4 * order * order) /
                               (8 * (last - below))),
                T(1))),
   ...);
  return sum;
}

template <int order, class T> inline T bessel(T x) {
  using Range = BesselRange<T>;
  constexpr T two_pi = T(6.28318530717958647693);
  T a = std::fabs(x);
  T near = a > Range::far ? Range::far : a, half = near * T(0.5);
  T far = a <= Range::far ? Range::far : a; // written so that NaN stays NaN
  far = far > Range::infinite ? Range::infinite : far;
  T small = bessel_near<order>(half * half, std::make_integer_sequence<int, Range::near_terms>());
  T root = exp(far * T(0.5)); // multiplied twice, since the full exponential overflows before the function does
  T large = bessel_far<order>(T(1) / far, std::make_integer_sequence<int, Range::far_terms>());
  T value = a <= Range::far ? (order == 0 ? small : half * small) : root / std::sqrt(two_pi * far) * large * root;
  return order == 1 && x < T(0) ? -value : value;
}

} // namespace orchard::ORCHARD_ISA
