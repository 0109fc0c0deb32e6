#include "loss.h"

#include "../elementwise/math.h" // exp, which is vectorized in loops
#include "../elementwise/softplus.h"
#include "../lanes.h"
#include "../streamed.h"
#include "tuning.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {
namespace {

using tuning::loss::tile;

// Returns elements in the compute type: the original ones, or a copy in `buffer`.
template <class T>
const Compute<T> *loaded(const char *first, int64_t stride, int64_t start, int64_t count, Compute<T> *buffer) {
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

template <class T>
void stored(const Compute<T> *values, const LossRun &run, int operand, int64_t start, int64_t count) {
  int64_t stride = run.strides[operand];
  T *to = reinterpret_cast<T *>(run.operands[operand]) + start * stride;
  if (stride == 1 && run.is_streamed) {
    T narrowed[tile];
    narrow(values, narrowed, count);
    return stream_row(narrowed, to, count * sizeof(T));
  }
  if (stride == 1) return narrow(values, to, count);
  for (int64_t i = 0; i < count; i++) to[i * stride] = store<T>(values[i]);
}

template <class C> struct Elements {
  const C *x, *t, *w, *v; // w and v are null if they are 1
};

// Calls use(elements, start, count) for tiles of a run.
template <class T, class Use> void for_each_tile(Loss loss, const LossRun &run, Use &&use) {
  using C = Compute<T>;
  C buffers[4][tile];
  bool is_weighted = loss == Loss::weightedBinaryCrossEntropy;
  for (int64_t start = 0; start < run.count; start += tile) {
    int64_t count = std::min(tile, run.count - start);
    auto operand = [&](int at) { return loaded<T>(run.operands[at], run.strides[at], start, count, buffers[at]); };
    use(Elements<C>{operand(loss_x), operand(loss_target), is_weighted ? operand(loss_weight) : nullptr,
                    is_weighted ? operand(loss_positive) : nullptr},
        start, count);
  }
}

// ---------------------------------------------------------------- formulas

template <class C> inline C magnitude(C x) { return x < 0 ? -x : x; }
// NaN is not preserved here; it is preserved by the terms to which the result is added.
template <class C> inline C softplus_of_negative(C x) {
  return fused(lifted_log_of_one_and_exp(magnitude(x)), half_lowered<C>, x < 0 ? -x : C(0));
}

// Operands never overlap a result; __restrict lets loops be vectorized without an aliasing check.
template <class C> void squared_errors(const C *__restrict x, const C *__restrict t, C *__restrict out, int64_t count) {
  for (int64_t i = 0; i < count; i++) out[i] = (x[i] - t[i]) * (x[i] - t[i]);
}

template <class C>
void binary_cross_entropies(const C *__restrict x, const C *__restrict t, C *__restrict out, int64_t count) {
  for (int64_t i = 0; i < count; i++) out[i] = (1 - t[i]) * x[i] + softplus_of_negative(x[i]);
}

template <class C>
void weighted_binary_cross_entropies(const C *__restrict x, const C *__restrict t, const C *__restrict w,
                                     const C *__restrict v, C *__restrict out, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    out[i] = w[i] * ((1 - t[i]) * x[i] + (1 - t[i] + v[i] * t[i]) * softplus_of_negative(x[i]));
}

// Limits logarithms, as PyTorch does; NaN stays NaN.
template <class C> inline C limited_logarithm(C x) { return x < C(-100) ? C(-100) : x; }

template <class C>
void probability_cross_entropies(const C *__restrict x, const C *__restrict t, C *__restrict out, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    out[i] = (t[i] - 1) * limited_logarithm(log1p(-x[i])) - t[i] * limited_logarithm(log(x[i]));
}

template <class C> void values_of(Loss loss, Elements<C> e, C *out, int64_t count) {
  switch (loss) {
  case Loss::squaredError: return squared_errors(e.x, e.t, out, count);
  case Loss::binaryCrossEntropy: return binary_cross_entropies(e.x, e.t, out, count);
  case Loss::weightedBinaryCrossEntropy: return weighted_binary_cross_entropies(e.x, e.t, e.w, e.v, out, count);
  case Loss::probabilityCrossEntropy: return probability_cross_entropies(e.x, e.t, out, count);
  case Loss::count: break;
  }
}

// (1 - t) σ(x) - v t σ(-x), where one exponential gives both sigmoids.
template <class C> inline C logit_derivative(C x, C t, C v) {
  C e = exp(-magnitude(x)), larger_one = 1 / (1 + e), smaller_one = e * larger_one;
  return (1 - t) * (x < 0 ? smaller_one : larger_one) - v * t * (x < 0 ? larger_one : smaller_one);
}

template <class C>
void logit_derivatives(const C *__restrict x, const C *__restrict t, C *__restrict out, int64_t count) {
  for (int64_t i = 0; i < count; i++) out[i] = logit_derivative(x[i], t[i], C(1));
}

template <class C>
void weighted_logit_derivatives(const C *__restrict x, const C *__restrict t, const C *__restrict w,
                                const C *__restrict v, C *__restrict out, int64_t count) {
  for (int64_t i = 0; i < count; i++) out[i] = w[i] * logit_derivative(x[i], t[i], v[i]);
}

// (x - t) / (x (1 - x)), with a lower bound of the divisor, as in PyTorch.
template <class C>
void probability_derivatives(const C *__restrict x, const C *__restrict t, C *__restrict out, int64_t count) {
  constexpr C least = C(1e-12);
  for (int64_t i = 0; i < count; i++) {
    const C product = x[i] * (1 - x[i]);
    out[i] = (x[i] - t[i]) / (product < least ? least : product);
  }
}

template <class C> void derivatives_of(Loss loss, Elements<C> e, C *out, int64_t count) {
  switch (loss) {
  case Loss::squaredError:
    for (int64_t i = 0; i < count; i++) out[i] = 2 * (e.x[i] - e.t[i]);
    return;
  case Loss::binaryCrossEntropy: return logit_derivatives(e.x, e.t, out, count);
  case Loss::weightedBinaryCrossEntropy: return weighted_logit_derivatives(e.x, e.t, e.w, e.v, out, count);
  case Loss::probabilityCrossEntropy: return probability_derivatives(e.x, e.t, out, count);
  case Loss::count: break;
  }
}

template <class C> void target_derivatives_of(Loss loss, Elements<C> e, C *out, int64_t count) {
  switch (loss) {
  case Loss::squaredError:
    for (int64_t i = 0; i < count; i++) out[i] = 2 * (e.t[i] - e.x[i]);
    return;
  case Loss::binaryCrossEntropy:
    for (int64_t i = 0; i < count; i++) out[i] = -e.x[i];
    return;
  case Loss::weightedBinaryCrossEntropy:
    for (int64_t i = 0; i < count; i++) out[i] = e.w[i] * ((e.v[i] - 1) * softplus_of_negative(e.x[i]) - e.x[i]);
    return;
  case Loss::probabilityCrossEntropy:
    for (int64_t i = 0; i < count; i++) out[i] = log1p(-e.x[i]) - log(e.x[i]);
    return;
  case Loss::count: break;
  }
}

// ---------------------------------------------------------------- runs

template <class T> void values(Loss loss, const LossRun &run) {
  using C = Compute<T>;
  C out[tile];
  for_each_tile<T>(loss, run, [&](Elements<C> e, int64_t start, int64_t count) {
    values_of(loss, e, out, count);
    stored<T>(out, run, loss_out, start, count);
  });
  if (run.is_streamed) orchard::streams().finish();
}

template <class T> double sum(Loss loss, const LossRun &run) {
  using C = Compute<T>;
  double total = 0;
  C values[tile];
  for_each_tile<T>(loss, run, [&](Elements<C> e, int64_t, int64_t count) {
    values_of(loss, e, values, count);
    total += summed(count, [&](int64_t i) { return double(values[i]); });
  });
  return total;
}

template <class T> void gradients(Loss loss, const LossRun &run) {
  using C = Compute<T>;
  C scale_buffer[tile], out[tile];
  for_each_tile<T>(loss, run, [&](Elements<C> e, int64_t start, int64_t count) {
    const C *scale = loaded<C>(run.operands[loss_scale], run.strides[loss_scale], start, count, scale_buffer);
    auto finish = [&](int operand) {
      for (int64_t i = 0; i < count; i++) out[i] *= scale[i] * C(run.factor);
      stored<T>(out, run, operand, start, count);
    };
    if (run.operands[loss_out]) {
      derivatives_of(loss, e, out, count);
      finish(loss_out);
    }
    if (run.operands[loss_target_out]) {
      target_derivatives_of(loss, e, out, count);
      finish(loss_target_out);
    }
  });
  if (run.is_streamed) orchard::streams().finish();
}

template <class T> constexpr LossKernel kernel() { return {values<T>, sum<T>, gradients<T>}; }

} // namespace

extern const Losses losses = {{kernel<double>(), kernel<float>(), kernel<Float16>(), kernel<BFloat16>()}};

} // namespace orchard::ORCHARD_ISA
