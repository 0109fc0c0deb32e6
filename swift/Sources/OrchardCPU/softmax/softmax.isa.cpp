#include "softmax.h"

#include "../exponential.h"

#include <limits>

namespace orchard::ORCHARD_ISA {
namespace {

constexpr int lanes = 32;

// Σ term(i), in float64: the same tree for the same count.
template <class Term> double summed(int64_t count, Term term) {
  double sums[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int lane = 0; lane < lanes; lane++) sums[lane] += term(i + lane);
  for (int lane = 0; i < count; i++, lane++) sums[lane] += term(i);
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; lane++) sums[lane] += sums[lane + half];
  return sums[0];
}

// The largest; a NaN where there is one.
template <class C> C largest(const C *x, int64_t count) {
  C best[lanes];
  for (C &own : best) own = -std::numeric_limits<C>::infinity();
  auto larger = [](C a, C b) { return bool((a >= b) | (a != a)) ? a : b; };
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int lane = 0; lane < lanes; lane++) best[lane] = larger(best[lane], x[i + lane]);
  for (; i < count; i++) best[0] = larger(best[0], x[i]);
  for (int lane = 1; lane < lanes; lane++) best[0] = larger(best[0], best[lane]);
  return best[0];
}

template <class C> void softmax(const C *x, C *out, int64_t count) {
  C top = largest(x, count);
  for (int64_t i = 0; i < count; i++) out[i] = exponential(C(x[i] - top));
  C total = C(summed(count, [=](int64_t i) { return double(out[i]); }));
  for (int64_t i = 0; i < count; i++) out[i] /= total;
}

template <class C> void log_softmax(const C *x, C *out, int64_t count) {
  C top = largest(x, count);
  for (int64_t i = 0; i < count; i++) out[i] = exponential(C(x[i] - top));
  C logarithm = C(std::log(summed(count, [=](int64_t i) { return double(out[i]); })));
  for (int64_t i = 0; i < count; i++) out[i] = (x[i] - top) - logarithm;
}

template <class C> void softmax_gradient(const C *g, const C *y, C *out, int64_t count) {
  C total = C(summed(count, [=](int64_t i) { return double(g[i]) * double(y[i]); }));
  for (int64_t i = 0; i < count; i++) out[i] = y[i] * (g[i] - total);
}

template <class C> void log_softmax_gradient(const C *g, const C *y, C *out, int64_t count) {
  C total = C(summed(count, [=](int64_t i) { return double(g[i]); }));
  for (int64_t i = 0; i < count; i++) out[i] = g[i] - exponential(y[i]) * total;
}

template <class C> void line(Softmax code, const C *x, const C *y, C *out, int64_t count) {
  switch (code) {
  case Softmax::softmax: return softmax(x, out, count);
  case Softmax::log_softmax: return log_softmax(x, out, count);
  case Softmax::softmax_gradient: return softmax_gradient(x, y, out, count);
  case Softmax::log_softmax_gradient: return log_softmax_gradient(x, y, out, count);
  }
}

// Lines side by side become lines one after the other.
template <class T> void gather(const T *from, int64_t along, int64_t across, int64_t lines, int64_t length, Compute<T> *to) {
  for (int64_t k = 0; k < length; k++)
    for (int64_t own = 0; own < lines; own++) to[own * length + k] = load(from[k * along + own * across]);
}

template <class T> void run(Softmax code, const SoftmaxBatch &batch) {
  using C = Compute<T>;
  const T *x = reinterpret_cast<const T *>(batch.x), *y = reinterpret_cast<const T *>(batch.y);
  T *out = reinterpret_cast<T *>(batch.out);
  bool is_gradient = code >= Softmax::softmax_gradient;
  if constexpr (std::is_same_v<T, C>) {
    bool is_adjacent = batch.along[0] == 1 && batch.along[1] == 1 && batch.along[2] == 1;
    if (batch.lines == 1 && is_adjacent) return line(code, x, y, out, batch.length);
  }
  C *first = reinterpret_cast<C *>(batch.scratch), *second = first + batch.lines * batch.length;
  gather(x, batch.along[0], batch.across[0], batch.lines, batch.length, first);
  if (is_gradient) gather(y, batch.along[1], batch.across[1], batch.lines, batch.length, second);
  for (int64_t own = 0; own < batch.lines; own++) {
    C *result = second + own * batch.length;
    line(code, first + own * batch.length, result, result, batch.length);
  }
  for (int64_t k = 0; k < batch.length; k++)
    for (int64_t own = 0; own < batch.lines; own++)
      out[k * batch.along[2] + own * batch.across[2]] = store<T>(second[own * batch.length + k]);
}

} // namespace

extern const Softmaxes softmaxes = {{run<double>, run<float>, run<Float16>, run<BFloat16>}};

} // namespace orchard::ORCHARD_ISA
