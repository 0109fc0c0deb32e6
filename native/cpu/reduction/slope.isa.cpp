#include "slope.h"

#include <cmath>

namespace orchard::ORCHARD_ISA {
namespace {

// Runs of the innermost axis: visit(index of the first element, its places, strides, length).
template <class Visit> void for_each_pair_run(const Nest &nest, int64_t begin, int64_t end, Visit &&visit) {
  int64_t inner = nest.inner_size();
  for (int64_t at = begin; at < end;) {
    int64_t length = std::min(inner - at % inner, end - at);
    visit(at, nest.offset(0, at), nest.offset(1, at), length);
    at += length;
  }
}

template <class C> C sign_of(C x) { return x > 0 ? C(1) : x < 0 ? C(-1) : x; }

template <class C> C slope_of(Slope slope, C x, C y, C p) {
  switch (slope) {
  case Slope::tie: return x == y || (x != x && y != y) ? C(1) : C(0);
  case Slope::sign: return sign_of(x);
  case Slope::quotient: return y == 0 ? C(0) : x / y;
  case Slope::power: return x == 0 || y == 0 ? C(0) : sign_of(x) * std::pow(std::fabs(x), p - 1) * std::pow(y, 1 - p);
  }
  return x;
}

template <class T>
void slope(Slope code, double parameter, const Nest &nest, int64_t begin, int64_t end, const void *x, const void *y, void *out) {
  using C = Compute<T>;
  int64_t x_step = nest.inner_stride(0), y_step = nest.inner_stride(1);
  auto run = [&](auto function) {
    for_each_pair_run(nest, begin, end, [&](int64_t at, int64_t x_at, int64_t y_at, int64_t length) {
      const T *a = static_cast<const T *>(x) + x_at, *b = static_cast<const T *>(y) + y_at;
      T *result = static_cast<T *>(out) + at;
      for (int64_t i = 0; i < length; i++) result[i] = store<T>(function(C(load(a[i * x_step])), C(load(b[i * y_step]))));
    });
  };
  C p = C(parameter);
  if (code == Slope::tie) run([=](C a, C b) { return slope_of<C>(Slope::tie, a, b, p); });
  else if (code == Slope::quotient) run([=](C a, C b) { return slope_of<C>(Slope::quotient, a, b, p); });
  else run([=](C a, C b) { return slope_of<C>(code, a, b, p); });
}

template <class T>
void select_at(int64_t size, int64_t inner, const Nest &nest, int64_t begin, int64_t end, const void *x, const int64_t *indices, void *out) {
  int64_t x_step = nest.inner_stride(0), index_step = nest.inner_stride(1);
  for_each_pair_run(nest, begin, end, [&](int64_t at, int64_t x_at, int64_t index_at, int64_t length) {
    const T *from = static_cast<const T *>(x) + x_at;
    for (int64_t i = 0; i < length; i++) {
      bool chosen = indices[index_at + i * index_step] == (at + i) / inner % size;
      static_cast<T *>(out)[at + i] = chosen ? from[i * x_step] : T{};
    }
  });
}

template <class T> constexpr SlopeKernels kernels() { return {slope<T>, select_at<T>}; }

} // namespace

extern const Slopes slopes = {{kernels<double>(), kernels<float>(), kernels<Float16>(), kernels<BFloat16>()}};

} // namespace orchard::ORCHARD_ISA
