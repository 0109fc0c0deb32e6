// Cross entropy of slices of few classes, stored side by side: each vector has one logit of several slices. The
// formulas are the same as in cross_entropy.isa.cpp.
#include "cross_entropy.h"

#include "../short_sums.h"

namespace orchard::ORCHARD_ISA {
namespace {

template <class C> double factor_of(const ShortClasses &block, int64_t slice) {
  return block.factors ? double(static_cast<const C *>(block.factors)[block.targets[slice]]) : 1;
}

// For each slice: the largest logit and Σ exp(x - largest), and Σ w x (with label smoothing).
template <class C> struct ShortStates {
  alignas(64) C largest[most_short_slices], logarithms[most_short_slices], weighted[most_short_slices];
};

template <class C>
void find_states(const C *columns, int64_t pitch, const ShortClasses &block, ShortStates<C> &states) {
  const int64_t classes = block.logits.length;
  const C *w = static_cast<const C *>(block.factors);
  for (int64_t j = 0; j < pitch; j += lanes<C>) {
    const C *x = columns + j;
    const Vector<C> top = finite_lanes<C>(largest_lanes(x, classes, pitch));
    store_vector(top, states.largest + j);
    store_vector(
        grouped_sum<C>(classes,
                       [&](int64_t k) { return exponential_lanes(Vector<C>(load_vector(x + k * pitch) - top)); }),
        states.logarithms + j);
    if (block.smoothing == 0) continue;
    store_vector(grouped_sum<C>(classes,
                                [&](int64_t k) {
                                  Vector<C> logit = load_vector(x + k * pitch);
                                  return w ? Vector<C>(logit * w[k]) : logit;
                                }),
                 states.weighted + j);
  }
  logarithms(states.logarithms, pitch);
}

template <class T> void losses(const ShortClasses &block, ClassLoss *results) {
  using C = Compute<T>;
  ShortRows<C> rows;
  ShortBlock<C> x;
  ShortStates<C> states;
  const int64_t classes = block.logits.length, pitch = short_pitch(block.logits.count);
  gather_short(reinterpret_cast<const T *>(block.x), block.logits, rows, x.columns);
  find_states(x.columns, pitch, block, states);
  const double epsilon = block.smoothing, each = epsilon / double(classes);
  for (int64_t slice = 0; slice < block.logits.count; slice++) {
    if (block.targets[slice] < 0) {
      results[slice] = {0, 0, 0, 0};
      continue;
    }
    double factor = factor_of<C>(block, slice), top = states.largest[slice], logarithm = states.logarithms[slice];
    double target = x.columns[block.targets[slice] * pitch + slice];
    double loss = (1 - epsilon) * factor * (logarithm - (target - top));
    if (epsilon > 0) loss += each * (block.factor_sum * (top + logarithm) - states.weighted[slice]);
    results[slice] = {loss, factor, top, logarithm};
  }
}

// ---------------------------------------------------------------- gradients

// Inputs of a slice's gradients besides its logits and its target.
template <class C> struct ShortScales {
  alignas(64) C largest[most_short_slices] = {},
                logarithms[most_short_slices] = {}, shares[most_short_slices] = {}, spreads[most_short_slices] = {};
};

template <class C>
void scale_exponentials(C *columns, int64_t pitch, const ShortClasses &block, const ShortScales<C> &scales) {
  const C *w = static_cast<const C *>(block.factors);
  for (int64_t k = 0; k < block.logits.length; k++) {
    C *__restrict x = columns + k * pitch;
    const C weight = w ? w[k] : C(1);
    for (int64_t j = 0; j < pitch; j++)
      x[j] = exponential(C((x[j] - scales.largest[j]) - scales.logarithms[j])) * scales.shares[j] -
             scales.spreads[j] * weight;
  }
}

template <class T> void gradients(const ShortClasses &block, const ClassScale *given) {
  using C = Compute<T>;
  ShortRows<C> rows;
  ShortBlock<C> x;
  ShortScales<C> scales;
  const int64_t classes = block.logits.length, count = block.logits.count, pitch = short_pitch(count);
  gather_short(reinterpret_cast<const T *>(block.x), block.logits, rows, x.columns);
  const double each = block.smoothing / double(classes);
  auto target_weight = [&](int64_t slice) { return (1 - block.smoothing) * factor_of<C>(block, slice); };
  for (int64_t slice = 0; slice < count; slice++) {
    if (block.targets[slice] < 0) continue;
    scales.largest[slice] = C(given[slice].largest), scales.logarithms[slice] = C(given[slice].logarithm);
    scales.shares[slice] = C((target_weight(slice) + each * block.factor_sum) * given[slice].scale);
    scales.spreads[slice] = C(each * given[slice].scale);
  }
  scale_exponentials(x.columns, pitch, block, scales);
  for (int64_t slice = 0; slice < count; slice++) {
    const int64_t target = block.targets[slice];
    if (target >= 0) x.columns[target * pitch + slice] -= C(target_weight(slice) * given[slice].scale);
    else
      for (int64_t k = 0; k < classes; k++) x.columns[k * pitch + slice] = 0;
  }
  scatter_short(x.columns, block.gradients, rows, reinterpret_cast<T *>(block.out), block.is_streamed);
}

} // namespace

extern const ShortCrossEntropies short_cross_entropies = {
    {losses<double>, losses<float>, losses<Float16>, losses<BFloat16>},
    {gradients<double>, gradients<float>, gradients<Float16>, gradients<BFloat16>}};

} // namespace orchard::ORCHARD_ISA
