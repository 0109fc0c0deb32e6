#include "complex.h"

namespace orchard::ORCHARD_ISA {
namespace {

template <class T>
void subtract(Complex<T> *__restrict y, const Complex<T> *__restrict x, Complex<T> factor, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    y[i].re -= factor.re * x[i].re - factor.im * x[i].im;
    y[i].im -= factor.re * x[i].im + factor.im * x[i].re;
  }
}

} // namespace

extern const ComplexKernels complex_kernels = {{subtract<double>}, {subtract<float>}};

} // namespace orchard::ORCHARD_ISA
