// eˣ on vectors, for x ≤ 0 and slightly above. If x is below the logarithm of the smallest normal number, the result is
// 0; NaN gives NaN.
//
// eˣ = 2ⁿ eʳ with n = round(x / ln 2) and r = x − n ln 2, where ln 2 is split into two parts. eʳ = 1 + r + r² p(r),
// with p chosen for the least relative error of eʳ on |r| ≤ ln 2 / 2 (3e-9). The result is within 1 unit in the last
// place if multiply_add rounds once, else within 2.
#pragma once

#include "../matmul/simd.h"

#include <cmath>

namespace orchard::ORCHARD_ISA {

inline Vector<float> exponential(Vector<float> x) {
  typedef int32_t Integers __attribute__((vector_size(vector_bytes)));
  constexpr float least = -87.0f;
  const Vector<float> none = {};
  auto constant = [&](float value) { return none + value; };
  const float rounder = 12583039.0f; // 1.5 · 2²³ + 127: adding it rounds and leaves the biased exponent in the low bits
  Vector<float> shifted = multiply_add<float>(x, 1.44269504088896341f, constant(rounder));
  Vector<float> whole = shifted - rounder;
  Vector<float> r = multiply_add<float>(whole, -0.693359375f, x);
  r = multiply_add<float>(whole, 2.12194440e-4f, r);
  Vector<float> p = multiply_add<float>(r, 1.3814540580e-3f, constant(8.3687454462e-3f));
  p = multiply_add<float>(p, r, constant(4.1668388993e-2f));
  p = multiply_add<float>(p, r, constant(1.6666521132e-1f));
  p = multiply_add<float>(p, r, constant(4.9999994040e-1f));
  p = multiply_add<float>(p, r, constant(1.0f));
  p = multiply_add<float>(p, r, constant(1.0f));
  Vector<float> power = Vector<float>(Integers(shifted) << 23);
  return x < least ? none : p * power; // flushes results below the smallest normal number to 0
}

inline Vector<double> exponential(Vector<double> x) {
  for (int lane = 0; lane < lanes<double>; lane++) x[lane] = std::exp(x[lane]);
  return x;
}

} // namespace orchard::ORCHARD_ISA
