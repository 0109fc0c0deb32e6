#include "loss.h"

#include "../elementwise/math.h"
#include "../lanes.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {
namespace {

constexpr int64_t tile = 1024;

// Calls use(operand) for elements in the compute type: where they lie, or brought together in `buffer`.
template <class T> const Compute<T> *loaded(const char *first, int64_t stride, int64_t start, int64_t count, Compute<T> *buffer) {
  using C = Compute<T>;
  if (!first) return nullptr;
  const T *from = reinterpret_cast<const T *>(first) + start * stride;
  if (stride == 1) {
    if constexpr (std::is_same_v<T, C>) return from;
    else widen(from, buffer, count);
  } else if (stride == 0) std::fill_n(buffer, count, C(load(*from)));
  else
    for (int64_t i = 0; i < count; i++) buffer[i] = load(from[i * stride]);
  return buffer;
}

template <class T> void stored(const Compute<T> *values, char *first, int64_t stride, int64_t start, int64_t count) {
  T *to = reinterpret_cast<T *>(first) + start * stride;
  if (stride == 1) return narrow(values, to, count);
  for (int64_t i = 0; i < count; i++) to[i * stride] = store<T>(values[i]);
}

template <class C> struct Elements {
  const C *x, *t, *w, *v; // w and v: null where they are 1
};

// Calls use(elements, start, count) for tiles of a run.
template <class T, class Use> void for_each_tile(Loss loss, const LossRun &run, Use &&use) {
  using C = Compute<T>;
  C buffers[4][tile];
  bool is_weighted = loss == Loss::weighted_binary_cross_entropy;
  for (int64_t start = 0; start < run.count; start += tile) {
    int64_t count = std::min(tile, run.count - start);
    auto operand = [&](int at) { return loaded<T>(run.operands[at], run.strides[at], start, count, buffers[at]); };
    use(Elements<C>{operand(loss_x), operand(loss_target), is_weighted ? operand(loss_weight) : nullptr,
                    is_weighted ? operand(loss_positive) : nullptr},
        start, count);
  }
}

// ---------------------------------------------------------------- formulas

template <class C> C magnitude(C x) { return x < 0 ? -x : x; }
template <class C> C softplus_of_negative(C x) { return log1p(exp(-magnitude(x))) + (x < 0 ? -x : C(0)); }

// Calls use with the formula of element i.
template <class C, class Use> auto with_value(Loss loss, Elements<C> e, Use &&use) {
  if (loss == Loss::squared_error) return use([=](int64_t i) { return (e.x[i] - e.t[i]) * (e.x[i] - e.t[i]); });
  if (loss == Loss::binary_cross_entropy)
    return use([=](int64_t i) { return (1 - e.t[i]) * e.x[i] + softplus_of_negative(e.x[i]); });
  return use([=](int64_t i) {
    C share = 1 - e.t[i] + e.v[i] * e.t[i];
    return e.w[i] * ((1 - e.t[i]) * e.x[i] + share * softplus_of_negative(e.x[i]));
  });
}

// (1 - t) σ(x) - v t σ(-x), with both from one exponential.
template <class C> C logit_slope(C x, C t, C v) {
  C e = exp(-magnitude(x)), larger_one = 1 / (1 + e), smaller_one = e * larger_one;
  return (1 - t) * (x < 0 ? smaller_one : larger_one) - v * t * (x < 0 ? larger_one : smaller_one);
}

template <class C> void slopes_of(Loss loss, Elements<C> e, C *out, int64_t count) {
  if (loss == Loss::squared_error)
    for (int64_t i = 0; i < count; i++) out[i] = 2 * (e.x[i] - e.t[i]);
  else if (loss == Loss::binary_cross_entropy)
    for (int64_t i = 0; i < count; i++) out[i] = logit_slope(e.x[i], e.t[i], C(1));
  else
    for (int64_t i = 0; i < count; i++) out[i] = e.w[i] * logit_slope(e.x[i], e.t[i], e.v[i]);
}

template <class C> void target_slopes_of(Loss loss, Elements<C> e, C *out, int64_t count) {
  if (loss == Loss::squared_error)
    for (int64_t i = 0; i < count; i++) out[i] = 2 * (e.t[i] - e.x[i]);
  else if (loss == Loss::binary_cross_entropy)
    for (int64_t i = 0; i < count; i++) out[i] = -e.x[i];
  else
    for (int64_t i = 0; i < count; i++) out[i] = e.w[i] * ((e.v[i] - 1) * softplus_of_negative(e.x[i]) - e.x[i]);
}

// ---------------------------------------------------------------- runs

template <class T> void values(Loss loss, const LossRun &run) {
  using C = Compute<T>;
  C out[tile];
  for_each_tile<T>(loss, run, [&](Elements<C> e, int64_t start, int64_t count) {
    with_value(loss, e, [&](auto value) {
      for (int64_t i = 0; i < count; i++) out[i] = value(i);
    });
    stored<T>(out, run.operands[loss_out], run.strides[loss_out], start, count);
  });
}

template <class T> double sum(Loss loss, const LossRun &run) {
  using C = Compute<T>;
  double total = 0;
  C own[tile];
  for_each_tile<T>(loss, run, [&](Elements<C> e, int64_t, int64_t count) {
    with_value(loss, e, [&](auto value) {
      for (int64_t i = 0; i < count; i++) own[i] = value(i);
    });
    total += summed(count, [&](int64_t i) { return double(own[i]); });
  });
  return total;
}

template <class T> void slopes(Loss loss, const LossRun &run) {
  using C = Compute<T>;
  C scale_buffer[tile], out[tile];
  for_each_tile<T>(loss, run, [&](Elements<C> e, int64_t start, int64_t count) {
    const C *scale = loaded<C>(run.operands[loss_scale], run.strides[loss_scale], start, count, scale_buffer);
    auto finish = [&](int operand) {
      for (int64_t i = 0; i < count; i++) out[i] *= scale[i] * C(run.factor);
      stored<T>(out, run.operands[operand], run.strides[operand], start, count);
    };
    if (run.operands[loss_out]) {
      slopes_of(loss, e, out, count);
      finish(loss_out);
    }
    if (run.operands[loss_target_out]) {
      target_slopes_of(loss, e, out, count);
      finish(loss_target_out);
    }
  });
}

template <class T> constexpr LossKernel kernel() { return {values<T>, sum<T>, slopes<T>}; }

} // namespace

extern const Losses losses = {{kernel<double>(), kernel<float>(), kernel<Float16>(), kernel<BFloat16>()}};

} // namespace orchard::ORCHARD_ISA
