// eˣ for x ≤ 0, and a little above, on vectors. What is below the smallest normal number's logarithm gives 0, NaN stays.
//
// eˣ = 2ⁿ eʳ with n = round(x / ln 2) and r = x − n ln 2, in two parts; eʳ by the polynomial of Cephes' expf. Within 2 units in the last place.
#pragma once

#include "../matmul/simd.h"

#include <cmath>

namespace orchard::ORCHARD_ISA {

inline Vector<float> exponential(Vector<float> x) {
  typedef int32_t Integers __attribute__((vector_size(vector_bytes)));
  constexpr float least = -87.0f, most = 88.0f;
  const Vector<float> none = {};
  auto constant = [&](float value) { return none + value; };
  auto is_too_small = x < least;
  x = is_too_small ? constant(least) : x;
  x = x > most ? constant(most) : x;
  const float rounder = 12582912.0f; // 1.5 · 2²³: adding it rounds to a whole number, which its low bits then hold
  Vector<float> shifted = multiply_add<float>(x, 1.44269504088896341f, constant(rounder));
  Vector<float> whole = shifted - rounder;
  Vector<float> r = multiply_add<float>(whole, -0.693359375f, x);
  r = multiply_add<float>(whole, 2.12194440e-4f, r);
  Vector<float> p = multiply_add<float>(r, 1.9875691500e-4f, constant(1.3981999507e-3f));
  p = multiply_add<float>(p, r, constant(8.3334519073e-3f));
  p = multiply_add<float>(p, r, constant(4.1665795894e-2f));
  p = multiply_add<float>(p, r, constant(1.6666665459e-1f));
  p = multiply_add<float>(p, r, constant(5.0000001201e-1f));
  p = multiply_add<float>(p, r * r, r) + 1.0f;
  Integers exponent = (Integers(shifted) << 23) + 0x3f800000;
  return is_too_small ? none : p * Vector<float>(exponent);
}

inline Vector<double> exponential(Vector<double> x) {
  for (int lane = 0; lane < lanes<double>; lane++) x[lane] = std::exp(x[lane]);
  return x;
}

} // namespace orchard::ORCHARD_ISA
