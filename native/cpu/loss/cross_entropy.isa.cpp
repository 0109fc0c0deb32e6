#include "cross_entropy.h"

#include "../log_sum_exp.h"
#include "../streamed.h"

namespace orchard::ORCHARD_ISA {
namespace {

// The logits of adjacent classes of a few slices, in the compute type; slices are contiguous.
template <class T> class Tile {
public:
  using C = Compute<T>;

  Tile(const ClassBatch &batch, int64_t width) : batch_(batch), width_(batch.slices > 1 ? class_tile : width) {}

  int64_t width() const { return width_; }

  // Loads the classes [start, start + count) of all slices.
  void load(int64_t start, int64_t count) {
    const T *x = reinterpret_cast<const T *>(batch_.x) + start * batch_.along_x;
    if (batch_.along_x == 1) {
      if constexpr (!std::is_same_v<T, C>)
        for (int64_t slice = 0; slice < batch_.slices; slice++)
          widen(x + slice * batch_.across_x, loaded(slice), count);
      return;
    }
    for (int64_t k = 0; k < count; k++)
      for (int64_t slice = 0; slice < batch_.slices; slice++)
        loaded(slice)[k] = load_(x[k * batch_.along_x + slice * batch_.across_x]);
  }

  // Returns the logits of a slice: the loaded copy, or the original if they need no conversion.
  const C *slice(int64_t slice, int64_t start) {
    if constexpr (std::is_same_v<T, C>)
      if (batch_.along_x == 1) return reinterpret_cast<const T *>(batch_.x) + slice * batch_.across_x + start;
    return loaded(slice);
  }

  // Returns where to write the gradient of a slice before it is stored: the result itself if it needs no conversion.
  C *result(int64_t slice, int64_t start) {
    if constexpr (std::is_same_v<T, C>)
      if (is_in_place()) return reinterpret_cast<T *>(batch_.out) + slice * batch_.across_out + start;
    return made(slice);
  }

  void store(int64_t start, int64_t count) {
    T *out = reinterpret_cast<T *>(batch_.out) + start * batch_.along_out;
    if (is_in_place()) return;
    if (batch_.along_out == 1) {
      for (int64_t slice = 0; slice < batch_.slices; slice++)
        write_results(made(slice), reinterpret_cast<T *>(loaded(slice)), out + slice * batch_.across_out, count,
                      batch_.is_streamed);
      return;
    }
    for (int64_t k = 0; k < count; k++)
      for (int64_t slice = 0; slice < batch_.slices; slice++)
        out[k * batch_.along_out + slice * batch_.across_out] = orchard::ORCHARD_ISA::store<T>(made(slice)[k]);
  }

private:
  bool is_in_place() const { return std::is_same_v<T, C> && batch_.along_out == 1 && !batch_.is_streamed; }
  static C load_(T value) { return orchard::ORCHARD_ISA::load(value); }
  C *loaded(int64_t slice) { return loaded_ + slice * width_; }
  C *made(int64_t slice) { return made_ + slice * width_; }

  const ClassBatch &batch_;
  int64_t width_;
  alignas(64) C loaded_[batch_slices * class_tile];
  alignas(64) C made_[batch_slices * class_tile]; // a separate array, so that loops over both are vectorized
};

// ---------------------------------------------------------------- losses

// The running state of a slice: the largest logit and Σ exp(x - largest), Σ w x (with label smoothing), and the
// target's logit.
struct SliceState {
  ExponentialSum exponentials;
  double weighted = 0, target = 0;
};

template <class C, class Meanwhile>
void include(SliceState &state, const ClassBatch &batch, const C *x, int64_t start, int64_t count,
             Meanwhile meanwhile) {
  include(state.exponentials, x, count, meanwhile);
  if (batch.smoothing == 0) return;
  const C *w = static_cast<const C *>(batch.factors) + start;
  state.weighted += batch.factors ? summed(count, [=](int64_t i) { return double(w[i]) * double(x[i]); })
                                  : summed(count, [=](int64_t i) { return double(x[i]); });
}

template <class C> double factor_of(const ClassBatch &batch, int64_t slice) {
  return batch.factors ? static_cast<const C *>(batch.factors)[batch.targets[slice]] : 1;
}

template <class C> ClassLoss loss_of(const SliceState &state, const ClassBatch &batch, int64_t slice) {
  double factor = factor_of<C>(batch, slice), epsilon = batch.smoothing;
  const auto &[largest, sum] = state.exponentials;
  double top = std::isinf(largest) ? std::numeric_limits<double>::quiet_NaN() : largest;
  double logarithm = std::log(sum);
  double loss = (1 - epsilon) * factor * (logarithm - (state.target - top));
  if (epsilon > 0) loss += epsilon / double(batch.classes) * (batch.factor_sum * (top + logarithm) - state.weighted);
  return {loss, factor, top, logarithm};
}

template <class T> void losses(const ClassBatch &batch, ClassLoss *results) {
  using C = Compute<T>;
  Tile<T> tile(batch, 4 * class_tile);
  SliceState states[batch_slices];
  for (int64_t start = 0; start < batch.classes; start += tile.width()) {
    int64_t count = std::min(tile.width(), batch.classes - start);
    tile.load(start, count);
    bool has_next = batch.along_x == 1 && start + count < batch.classes;
    Fetch<T> next{has_next ? reinterpret_cast<const T *>(batch.x) + start + count : nullptr}; // only for a single slice
    for (int64_t slice = 0; slice < batch.slices; slice++) {
      int64_t target = batch.targets[slice] - start;
      if (batch.targets[slice] < 0) continue;
      const C *x = tile.slice(slice, start);
      include(states[slice], batch, x, start, count, next);
      if (target >= 0 && target < count) states[slice].target = x[target];
    }
  }
  for (int64_t slice = 0; slice < batch.slices; slice++)
    results[slice] = batch.targets[slice] < 0 ? ClassLoss{0, 0, 0, 0} : loss_of<C>(states[slice], batch, slice);
}

// ---------------------------------------------------------------- gradients

template <class C>
void gradient_of(const ClassBatch &batch, int64_t slice, ClassScale given, const C *__restrict x, C *__restrict out,
                 int64_t start, int64_t count) {
  if (batch.targets[slice] < 0) return void(std::fill_n(out, count, C(0)));
  double target_weight = (1 - batch.smoothing) * factor_of<C>(batch, slice),
         each = batch.smoothing / double(batch.classes);
  C top = C(given.largest), logarithm = C(given.logarithm),
    share = C((target_weight + each * batch.factor_sum) * given.scale), spread = C(each * given.scale);
  const C *w = static_cast<const C *>(batch.factors) + start;
  if (batch.smoothing == 0)
    for (int64_t i = 0; i < count; i++) out[i] = exponential(C((x[i] - top) - logarithm)) * share;
  else if (batch.factors)
    for (int64_t i = 0; i < count; i++) out[i] = exponential(C((x[i] - top) - logarithm)) * share - spread * w[i];
  else
    for (int64_t i = 0; i < count; i++) out[i] = exponential(C((x[i] - top) - logarithm)) * share - spread;
  int64_t target = batch.targets[slice] - start;
  if (target >= 0 && target < count) out[target] -= C(target_weight * given.scale);
}

template <class T> void gradients(const ClassBatch &batch, const ClassScale *given) {
  Tile<T> tile(batch, class_tile);
  for (int64_t start = 0; start < batch.classes; start += tile.width()) {
    int64_t count = std::min(tile.width(), batch.classes - start);
    tile.load(start, count);
    for (int64_t slice = 0; slice < batch.slices; slice++)
      gradient_of(batch, slice, given[slice], tile.slice(slice, start), tile.result(slice, start), start, count);
    tile.store(start, count);
  }
}

template <class T> constexpr CrossEntropyKernel kernel() { return {losses<T>, gradients<T>}; }

} // namespace

extern const CrossEntropies cross_entropies = {
    {kernel<double>(), kernel<float>(), kernel<Float16>(), kernel<BFloat16>()}};

} // namespace orchard::ORCHARD_ISA
