// Linear algebra of complex matrices, which are row-major and contiguous: an element is its real part, then its
// imaginary part.
#pragma once

#include "../../.build/generated/complex_cholesky_block.h"
#include "../../.build/generated/complex_lu_block.h"
#include "../../.build/generated/complex_triangular_block.h"
#include "../../.build/generated/complex_qr_block.h"
#include "../../.build/generated/complex_tridiagonal_block.h"
#include "../../.build/generated/complex_bidiagonal_block.h"
#include "../../.build/generated/complex_eig_block.h"

#include "matrices.h"

namespace orchard {

template <class T> struct Complex {
  T re, im;
};

template <class T> inline Complex<T> operator+(Complex<T> a, Complex<T> b) { return {a.re + b.re, a.im + b.im}; }
template <class T> inline Complex<T> operator-(Complex<T> a, Complex<T> b) { return {a.re - b.re, a.im - b.im}; }
template <class T> inline Complex<T> operator-(Complex<T> a) { return {-a.re, -a.im}; }
template <class T> inline Complex<T> operator*(Complex<T> a, Complex<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class T> inline Complex<T> operator*(Complex<T> a, T b) { return {a.re * b, a.im * b}; }
template <class T> inline Complex<T> conjugate(Complex<T> a) { return {a.re, -a.im}; }
template <class T> inline T absolute(Complex<T> a) { return std::hypot(a.re, a.im); }
// |re| + |im|, with which LAPACK compares complex numbers.
template <class T> inline T size_of(Complex<T> a) { return std::abs(a.re) + std::abs(a.im); }
// Divides by the larger part first, so that no square overflows. Source: R. L. Smith, "Algorithm 116: Complex
// division", 1962.
template <class T> inline Complex<T> operator/(Complex<T> a, Complex<T> b) {
  if (std::abs(b.re) >= std::abs(b.im)) {
    const T ratio = b.im == 0 ? b.im : b.im / b.re, divisor = b.re + b.im * ratio;
    return {(a.re + a.im * ratio) / divisor, (a.im - a.re * ratio) / divisor};
  }
  const T ratio = b.re / b.im, divisor = b.re * ratio + b.im;
  return {(a.re * ratio + a.im) / divisor, (a.im * ratio - a.re) / divisor};
}
// a / |a|, or 1 if a is 0.
template <class T> inline Complex<T> phase_of(Complex<T> a) {
  const T size = absolute(a);
  return size == 0 ? Complex<T>{1, 0} : Complex<T>{a.re / size, a.im / size};
}

template <class T> struct ComplexKernel {
  // y -= factor x.
  void (*subtract)(Complex<T> *y, const Complex<T> *x, Complex<T> factor, int64_t count);
};

using ComplexKernels = OfReals<ComplexKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(ComplexKernels, complex_kernels)

namespace orchard {

template <class T> inline void subtract(Complex<T> *y, const Complex<T> *x, Complex<T> factor, int64_t count) {
  if (count > 0) complex_kernels().of<T>().subtract(y, x, factor, count);
}

} // namespace orchard
