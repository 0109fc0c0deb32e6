// Reflections of complex vectors.
#pragma once

#include "batches.h"
#include "complex.h"

namespace orchard {

// A reflection H = I − tau v vᴴ with v[0] = 1, which is unitary and Hermitian.
template <class T> struct ComplexReflection {
  T tau;
  Complex<T> beta; // H x = beta e₁
};

// Replaces x by v. |beta| is ‖x‖, and beta has the opposite phase of x[0], so that v has no cancellation. tau is
// (|x[0]| + ‖x‖) / ‖x‖, since vᴴ v = 2 ‖x‖ / (|x[0]| + ‖x‖).
template <class T> ComplexReflection<T> reflect(Complex<T> *x, int64_t count) {
  T largest = 0, sum = 0;
  bool is_reduced = true;
  for (int64_t i = 1; i < count; i++) {
    largest = std::max({largest, std::abs(x[i].re), std::abs(x[i].im)});
    is_reduced &= x[i].re == 0 && x[i].im == 0; // false for NaN
  }
  const Complex<T> first = x[0], phase = phase_of(first);
  x[0] = {1, 0};
  if (is_reduced) return {0, first};
  const T size = absolute(first);
  largest = std::max(largest, size);
  for (int64_t i = 1; i < count; i++) {
    const T re = x[i].re / largest, im = x[i].im / largest;
    sum += re * re + im * im;
  }
  const T norm = largest * std::sqrt(sum + (size / largest) * (size / largest)), divisor = size + norm;
  for (int64_t i = 1; i < count; i++) {
    const Complex<T> part = x[i] * conjugate(phase);
    x[i] = {part.re / divisor, part.im / divisor};
  }
  return {divisor / norm, phase * -norm};
}

// A = H A for `rows` rows of `columns` elements, `stride` apart. `work` has `columns` elements.
template <class T>
void reflect_rows(const Complex<T> *v, T tau, Complex<T> *a, int64_t rows, int64_t columns, int64_t stride,
                  Complex<T> *work) {
  if (tau == 0) return;
  std::fill_n(work, columns, Complex<T>{0, 0});
  for (int64_t i = 0; i < rows; i++) subtract(work, a + i * stride, -conjugate(v[i]), columns);
  for (int64_t i = 0; i < rows; i++) subtract(a + i * stride, work, v[i] * tau, columns);
}

} // namespace orchard
