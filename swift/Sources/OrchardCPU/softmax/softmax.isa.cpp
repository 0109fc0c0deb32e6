#include "softmax.h"

#include "../lanes.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {
namespace {

template <class C> SoftmaxState state_of(Softmax code, const C *x, const C *y, int64_t count) {
  if (code == Softmax::softmax_gradient) return {0, summed(count, [=](int64_t i) { return double(x[i]) * double(y[i]); })};
  if (code == Softmax::log_softmax_gradient) return {0, summed(count, [=](int64_t i) { return double(x[i]); })};
  C top = largest(x, count);
  return {double(top), exponentials<false>(x, shift_of(top), static_cast<C *>(nullptr), count)};
}

double rescaled(SoftmaxState state, double top) {
  return state.sum == 0 ? 0 : state.sum * std::exp(shift_of(state.largest) - shift_of(top));
}

SoftmaxState merged(Softmax code, SoftmaxState a, SoftmaxState b) {
  if (code >= Softmax::softmax_gradient) return {0, a.sum + b.sum};
  double top = larger(a.largest, b.largest);
  return {top, rescaled(a, top) + rescaled(b, top)};
}

// NaN where the largest element is infinite: x - top is then, or the sum of exponentials is not of it.
template <class C> void results_of(Softmax code, const C *x, const C *y, C *out, int64_t count, SoftmaxState state) {
  C top = std::isinf(state.largest) ? std::numeric_limits<C>::quiet_NaN() : C(state.largest);
  C total = C(state.sum), share = C(1 / state.sum), logarithm = C(std::log(state.sum));
  auto each = [=](auto result) {
    for (int64_t i = 0; i < count; i++) out[i] = result(i);
  };
  switch (code) {
  case Softmax::softmax: return each([=](int64_t i) { return exponential(C(x[i] - top)) * share; });
  case Softmax::log_softmax: return each([=](int64_t i) { return (x[i] - top) - logarithm; });
  case Softmax::softmax_gradient: return each([=](int64_t i) { return y[i] * (x[i] - total); });
  case Softmax::log_softmax_gradient: return each([=](int64_t i) { return x[i] - exponential(y[i]) * total; });
  }
}

// A line that stays in the cache: its exponentials are kept.
template <class C> void softmax(const C *x, C *out, int64_t count) {
  C share = C(1 / exponentials<true>(x, largest(x, count), out, count));
  for (int64_t i = 0; i < count; i++) out[i] *= share;
}

template <class C> void line(Softmax code, const C *x, const C *y, C *out, int64_t count) {
  if (code == Softmax::softmax) softmax(x, out, count);
  else results_of(code, x, y, out, count, state_of(code, x, y, count));
}

// ---------------------------------------------------------------- lines side by side

template <class C> struct Columns {
  C *x, *y; // [length, lines]
  int64_t length, lines;

  // visit(place, line) for every element, in rows.
  template <class Visit> void each(Visit visit) const {
    for (int64_t k = 0; k < length; k++)
      for (int64_t line = 0; line < lines; line++) visit(k * lines + line, line);
  }
};

// Results take the place of x.
template <class C> void columns(Softmax code, Columns<C> own) {
  C *x = own.x, *y = own.y, tops[softmax_lines], totals[softmax_lines];
  double sums[softmax_lines] = {};
  if (code == Softmax::softmax_gradient) own.each([&](int64_t i, int64_t line) { sums[line] += double(x[i]) * double(y[i]); });
  else if (code == Softmax::log_softmax_gradient) own.each([&](int64_t i, int64_t line) { sums[line] += double(x[i]); });
  else {
    for (int64_t line = 0; line < own.lines; line++) tops[line] = -std::numeric_limits<C>::infinity();
    own.each([&](int64_t i, int64_t line) { tops[line] = larger(tops[line], x[i]); });
    own.each([&](int64_t i, int64_t line) { x[i] -= tops[line]; });
    if (code == Softmax::softmax) own.each([&](int64_t i, int64_t) { x[i] = exponential(x[i]); });
    if (code == Softmax::softmax) own.each([&](int64_t i, int64_t line) { sums[line] += double(x[i]); });
    else own.each([&](int64_t i, int64_t line) { sums[line] += double(exponential(x[i])); });
  }
  for (int64_t line = 0; line < own.lines; line++)
    totals[line] = C(code == Softmax::softmax ? 1 / sums[line] : code == Softmax::log_softmax ? std::log(sums[line]) : sums[line]);
  switch (code) {
  case Softmax::softmax: return own.each([&](int64_t i, int64_t line) { x[i] *= totals[line]; });
  case Softmax::log_softmax: return own.each([&](int64_t i, int64_t line) { x[i] -= totals[line]; });
  case Softmax::softmax_gradient: return own.each([&](int64_t i, int64_t line) { x[i] = y[i] * (x[i] - totals[line]); });
  case Softmax::log_softmax_gradient: return own.each([&](int64_t i, int64_t line) { x[i] -= exponential(y[i]) * totals[line]; });
  }
}

template <class T> void run_columns(Softmax code, const SoftmaxBatch &batch) {
  using C = Compute<T>;
  C *x = reinterpret_cast<C *>(batch.scratch), *y = x + batch.lines * batch.length;
  bool is_gradient = code >= Softmax::softmax_gradient;
  for (int64_t k = 0; k < batch.length; k++) {
    widen(reinterpret_cast<const T *>(batch.x) + k * batch.along[0], x + k * batch.lines, batch.lines);
    if (is_gradient) widen(reinterpret_cast<const T *>(batch.y) + k * batch.along[1], y + k * batch.lines, batch.lines);
  }
  columns<C>(code, {x, y, batch.length, batch.lines});
  for (int64_t k = 0; k < batch.length; k++)
    narrow(x + k * batch.lines, reinterpret_cast<T *>(batch.out) + k * batch.along[2], batch.lines);
}

// ---------------------------------------------------------------- any lines

template <class T> void gather(const T *from, int64_t along, int64_t length, Compute<T> *to) {
  if (along == 1) return widen(from, to, length);
  for (int64_t k = 0; k < length; k++) to[k] = load(from[k * along]);
}

template <class T> void run(Softmax code, const SoftmaxBatch &batch) {
  using C = Compute<T>;
  if (batch.lines > 1) return run_columns<T>(code, batch);
  const T *x = reinterpret_cast<const T *>(batch.x), *y = reinterpret_cast<const T *>(batch.y);
  T *out = reinterpret_cast<T *>(batch.out);
  if constexpr (std::is_same_v<T, C>) {
    if (batch.along[0] == 1 && batch.along[1] == 1 && batch.along[2] == 1) return line(code, x, y, out, batch.length);
  }
  C *first = reinterpret_cast<C *>(batch.scratch), *second = first + batch.length;
  gather(x, batch.along[0], batch.length, first);
  if (code >= Softmax::softmax_gradient) gather(y, batch.along[1], batch.length, second);
  line(code, first, second, second, batch.length);
  for (int64_t k = 0; k < batch.length; k++) out[k * batch.along[2]] = store<T>(second[k]);
}

// ---------------------------------------------------------------- parts of a line

constexpr int64_t tile = 2048; // elements that are widened at once

// Calls use(x, y, out, count) for tiles in the compute type; y of gradients only, out where it is given.
template <class T, class Use> void for_each_tile(bool has_y, const char *x, const char *y, char *out, int64_t count, Use &&use) {
  using C = Compute<T>;
  const T *from = reinterpret_cast<const T *>(x), *second = reinterpret_cast<const T *>(y);
  T *to = reinterpret_cast<T *>(out);
  if constexpr (std::is_same_v<T, C>) use(from, second, to, count);
  else {
    C wide_x[tile], wide_y[tile];
    for (int64_t start = 0; start < count; start += tile) {
      int64_t size = std::min(tile, count - start);
      widen(from + start, wide_x, size);
      if (has_y) widen(second + start, wide_y, size);
      use(wide_x, wide_y, wide_x, size);
      if (to) narrow(wide_x, to + start, size);
    }
  }
}

template <class T> SoftmaxState part_state(Softmax code, const char *x, const char *y, int64_t count) {
  using C = Compute<T>;
  SoftmaxState state{-std::numeric_limits<double>::infinity(), 0};
  for_each_tile<T>(code >= Softmax::softmax_gradient, x, y, nullptr, count, [&](const C *own, const C *second, C *, int64_t size) {
    state = merged(code, state, state_of(code, own, second, size));
  });
  return state;
}

template <class T> void part_results(Softmax code, const char *x, const char *y, char *out, int64_t count, SoftmaxState state) {
  using C = Compute<T>;
  for_each_tile<T>(code >= Softmax::softmax_gradient, x, y, out, count,
                   [&](const C *own, const C *second, C *to, int64_t size) { results_of(code, own, second, to, size, state); });
}

template <class T> constexpr SoftmaxKernel kernel() { return {run<T>, part_state<T>, merged, part_results<T>}; }

} // namespace

extern const Softmaxes softmaxes = {{kernel<double>(), kernel<float>(), kernel<Float16>(), kernel<BFloat16>()}};

} // namespace orchard::ORCHARD_ISA
