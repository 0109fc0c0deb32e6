// Softmax of short slices, whose elements are side by side: a vector has an element of several slices.
#include "softmax.h"

#include "../short_sums.h"

namespace orchard::ORCHARD_ISA {
namespace {

// Computes one slice per lane of a vector, in place.
template <class C> void softmax_lanes(C *x, int64_t length, int64_t pitch) {
  const Vector<C> top = finite_lanes<C>(largest_lanes(x, length, pitch));
  Vector<C> sum = grouped_sum<C>(length, [&](int64_t k) {
    Vector<C> power = exponential_lanes(Vector<C>(load_vector(x + k * pitch) - top));
    store_vector(power, x + k * pitch);
    return power;
  });
  const Vector<C> share = C(1) / sum;
  for (int64_t k = 0; k < length; k++) store_vector<C>(load_vector(x + k * pitch) * share, x + k * pitch);
}

template <class C> void log_softmax_lanes(C *x, int64_t length, int64_t pitch) {
  const Vector<C> top = finite_lanes<C>(largest_lanes(x, length, pitch));
  Vector<C> sum = grouped_sum<C>(length, [&](int64_t k) {
    Vector<C> shifted = load_vector(x + k * pitch) - top;
    store_vector(shifted, x + k * pitch);
    return exponential_lanes(shifted);
  });
  alignas(64) C sums[lanes<C>];
  store_vector(sum, sums);
  logarithms(sums, lanes<C>);
  const Vector<C> logarithm = load_vector(sums);
  for (int64_t k = 0; k < length; k++) store_vector<C>(load_vector(x + k * pitch) - logarithm, x + k * pitch);
}

template <class C> void softmax_gradient_lanes(C *g, const C *y, int64_t length, int64_t pitch) {
  const Vector<C> sum = grouped_sum<C>(
      length, [&](int64_t k) { return Vector<C>(load_vector(g + k * pitch) * load_vector(y + k * pitch)); });
  for (int64_t k = 0; k < length; k++)
    store_vector<C>(load_vector(y + k * pitch) * (load_vector(g + k * pitch) - sum), g + k * pitch);
}

template <class C> void log_softmax_gradient_lanes(C *g, const C *y, int64_t length, int64_t pitch) {
  const Vector<C> sum = grouped_sum<C>(length, [&](int64_t k) { return load_vector(g + k * pitch); });
  for (int64_t k = 0; k < length; k++) {
    Vector<C> power = exponential_lanes(load_vector(y + k * pitch));
    store_vector<C>(load_vector(g + k * pitch) - power * sum, g + k * pitch);
  }
}

template <class C> void run_lanes(Softmax operation, C *x, const C *y, int64_t length, int64_t pitch) {
  switch (operation) {
  case Softmax::softmax: return softmax_lanes(x, length, pitch);
  case Softmax::logSoftmax: return log_softmax_lanes(x, length, pitch);
  case Softmax::softmaxGradient: return softmax_gradient_lanes(x, y, length, pitch);
  case Softmax::logSoftmaxGradient: return log_softmax_gradient_lanes(x, y, length, pitch);
  case Softmax::count: break;
  }
}

template <class T> void run(Softmax operation, const ShortSoftmax &block) {
  using C = Compute<T>;
  ShortRows<C> rows;
  ShortBlock<C> x, y;
  gather_short(reinterpret_cast<const T *>(block.x), block.slices[0], rows, x.columns);
  if (is_gradient(operation)) gather_short(reinterpret_cast<const T *>(block.second), block.slices[1], rows, y.columns);
  const int64_t length = block.slices[0].length, pitch = short_pitch(block.slices[0].count);
  for (int64_t j = 0; j < pitch; j += lanes<C>) run_lanes(operation, x.columns + j, y.columns + j, length, pitch);
  scatter_short(x.columns, block.slices[2], rows, reinterpret_cast<T *>(block.out), block.is_streamed);
}

} // namespace

extern const ShortSoftmaxes short_softmaxes = {{run<double>, run<float>, run<Float16>, run<BFloat16>}};

} // namespace orchard::ORCHARD_ISA
