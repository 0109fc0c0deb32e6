#include "derivatives.h"

#include <cmath>

namespace orchard::ORCHARD_ISA {
namespace {

template <class C> C sign_of(C x) { return x > 0 ? C(1) : x < 0 ? C(-1) : x; }

template <class C> C derivative_of(ReductionDerivative operation, C x, C y, C p) {
  switch (operation) {
  case ReductionDerivative::tie: return x == y || (x != x && y != y) ? C(1) : C(0);
  case ReductionDerivative::sign: return sign_of(x);
  case ReductionDerivative::quotient: return y == 0 ? C(0) : x / y;
  case ReductionDerivative::power: return x == 0 || y == 0 ? C(0) : sign_of(x) * std::pow(std::fabs(x / y), p - 1);
  case ReductionDerivative::count: break;
  }
  return x;
}

template <class T>
void derivative(ReductionDerivative operation, double parameter, const Nest<2> &nest, int64_t begin, int64_t end,
                const void *x, const void *y, void *out) {
  using C = Compute<T>;
  int64_t x_step = nest.run_stride(0), y_step = nest.run_stride(1);
  auto run = [&](auto function) {
    for_each_run(nest, begin, end, [&](const int64_t (&offsets)[2], int64_t first, int64_t length) {
      const T *a = static_cast<const T *>(x) + offsets[0], *b = static_cast<const T *>(y) + offsets[1];
      T *result = static_cast<T *>(out) + first;
      for (int64_t i = 0; i < length; i++)
        result[i] = store<T>(function(C(load(a[i * x_step])), C(load(b[i * y_step]))));
    });
  };
  constexpr auto tie = ReductionDerivative::tie, quotient = ReductionDerivative::quotient;
  C p = C(parameter);
  if (operation == tie) run([=](C a, C b) { return derivative_of<C>(tie, a, b, p); });
  else if (operation == quotient) run([=](C a, C b) { return derivative_of<C>(quotient, a, b, p); });
  else run([=](C a, C b) { return derivative_of<C>(operation, a, b, p); });
}

template <class T>
void select_at(int64_t size, int64_t inner, const Nest<2> &nest, int64_t begin, int64_t end, const void *x,
               const int64_t *indices, void *out) {
  int64_t x_step = nest.run_stride(0), index_step = nest.run_stride(1);
  for_each_run(nest, begin, end, [&](const int64_t (&offsets)[2], int64_t first, int64_t length) {
    const T *from = static_cast<const T *>(x) + offsets[0];
    const int64_t *index = indices + offsets[1];
    for (int64_t i = 0; i < length; i++) {
      bool is_chosen = index[i * index_step] == (first + i) / inner % size;
      static_cast<T *>(out)[first + i] = is_chosen ? from[i * x_step] : T{};
    }
  });
}

template <class T> constexpr DerivativeKernels kernels() { return {derivative<T>, select_at<T>}; }

} // namespace

extern const ReductionDerivatives reduction_derivatives = {
    {kernels<double>(), kernels<float>(), kernels<Float16>(), kernels<BFloat16>()}};

} // namespace orchard::ORCHARD_ISA
