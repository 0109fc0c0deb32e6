#include "cross_entropy.h"

#include "../log_sum_exp.h"
#include "../streamed.h"

namespace orchard::ORCHARD_ISA {
namespace {

// A few lines' logits of adjacent classes in the compute type, rows one after the other.
template <class T> class Tile {
public:
  using C = Compute<T>;

  Tile(const ClassBatch &batch, int64_t width) : batch_(batch), width_(batch.lines > 1 ? class_tile : width) {}

  int64_t width() const { return width_; }

  // Brings the classes [start, start + count) of all lines.
  void load(int64_t start, int64_t count) {
    const T *x = reinterpret_cast<const T *>(batch_.x) + start * batch_.along_x;
    if (batch_.along_x == 1) {
      if constexpr (!std::is_same_v<T, C>)
        for (int64_t line = 0; line < batch_.lines; line++) widen(x + line * batch_.across_x, own(line), count);
      return;
    }
    for (int64_t k = 0; k < count; k++)
      for (int64_t line = 0; line < batch_.lines; line++) own(line)[k] = load_(x[k * batch_.along_x + line * batch_.across_x]);
  }

  // A line's logits as they were loaded; they may lie where the operand has them.
  const C *row(int64_t line, int64_t start) {
    if constexpr (std::is_same_v<T, C>)
      if (batch_.along_x == 1) return reinterpret_cast<const T *>(batch_.x) + line * batch_.across_x + start;
    return own(line);
  }

  // Where a line's results are written before they are stored: into the result itself where that is possible.
  C *result(int64_t line, int64_t start) {
    if constexpr (std::is_same_v<T, C>)
      if (is_in_place()) return reinterpret_cast<T *>(batch_.out) + line * batch_.across_out + start;
    return made(line);
  }

  void store(int64_t start, int64_t count) {
    T *out = reinterpret_cast<T *>(batch_.out) + start * batch_.along_out;
    if (is_in_place()) return;
    if (batch_.along_out == 1) {
      for (int64_t line = 0; line < batch_.lines; line++)
        write_results(made(line), reinterpret_cast<T *>(own(line)), out + line * batch_.across_out, count, batch_.is_streamed);
      return;
    }
    for (int64_t k = 0; k < count; k++)
      for (int64_t line = 0; line < batch_.lines; line++)
        out[k * batch_.along_out + line * batch_.across_out] = orchard::ORCHARD_ISA::store<T>(made(line)[k]);
  }

private:
  bool is_in_place() const { return std::is_same_v<T, C> && batch_.along_out == 1 && !batch_.is_streamed; }
  static C load_(T value) { return orchard::ORCHARD_ISA::load(value); }
  C *own(int64_t line) { return loaded_ + line * width_; }
  C *made(int64_t line) { return made_ + line * width_; }

  const ClassBatch &batch_;
  int64_t width_;
  alignas(64) C loaded_[class_lines * class_tile];
  alignas(64) C made_[class_lines * class_tile]; // apart, so that loops from one to the other become vectors
};

// ---------------------------------------------------------------- losses

// What is known of a line so far: the largest logit and Σ exp(x - largest), Σ w x (of a smoothed loss), and the target's logit.
struct LineState {
  ExponentialSum exponentials;
  double weighted = 0, target = 0;
};

template <class C, class Meanwhile>
void include(LineState &state, const ClassBatch &batch, const C *x, int64_t start, int64_t count, Meanwhile meanwhile) {
  include(state.exponentials, x, count, meanwhile);
  if (batch.smoothing == 0) return;
  const C *w = static_cast<const C *>(batch.factors) + start;
  state.weighted += batch.factors ? summed(count, [=](int64_t i) { return double(w[i]) * double(x[i]); })
                                  : summed(count, [=](int64_t i) { return double(x[i]); });
}

template <class C> double factor_of(const ClassBatch &batch, int64_t line) {
  return batch.factors ? static_cast<const C *>(batch.factors)[batch.targets[line]] : 1;
}

template <class C> ClassLoss loss_of(const LineState &state, const ClassBatch &batch, int64_t line) {
  double factor = factor_of<C>(batch, line), epsilon = batch.smoothing;
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
  LineState states[class_lines];
  for (int64_t start = 0; start < batch.classes; start += tile.width()) {
    int64_t count = std::min(tile.width(), batch.classes - start);
    tile.load(start, count);
    bool has_next = batch.along_x == 1 && start + count < batch.classes;
    Fetch<T> next{has_next ? reinterpret_cast<const T *>(batch.x) + start + count : nullptr}; // of a single line
    for (int64_t line = 0; line < batch.lines; line++) {
      int64_t target = batch.targets[line] - start;
      if (batch.targets[line] < 0) continue;
      const C *x = tile.row(line, start);
      include(states[line], batch, x, start, count, next);
      if (target >= 0 && target < count) states[line].target = x[target];
    }
  }
  for (int64_t line = 0; line < batch.lines; line++)
    results[line] = batch.targets[line] < 0 ? ClassLoss{0, 0, 0, 0} : loss_of<C>(states[line], batch, line);
}

// ---------------------------------------------------------------- gradients

template <class C>
void slope_of(const ClassBatch &batch, int64_t line, ClassSlope slope, const C *__restrict x, C *__restrict out, int64_t start,
              int64_t count) {
  if (batch.targets[line] < 0) return void(std::fill_n(out, count, C(0)));
  double own = (1 - batch.smoothing) * factor_of<C>(batch, line), each = batch.smoothing / double(batch.classes);
  C top = C(slope.largest), logarithm = C(slope.logarithm), share = C((own + each * batch.factor_sum) * slope.scale), spread = C(each * slope.scale);
  const C *w = static_cast<const C *>(batch.factors) + start;
  if (batch.smoothing == 0)
    for (int64_t i = 0; i < count; i++) out[i] = exponential(C((x[i] - top) - logarithm)) * share;
  else if (batch.factors)
    for (int64_t i = 0; i < count; i++) out[i] = exponential(C((x[i] - top) - logarithm)) * share - spread * w[i];
  else
    for (int64_t i = 0; i < count; i++) out[i] = exponential(C((x[i] - top) - logarithm)) * share - spread;
  int64_t target = batch.targets[line] - start;
  if (target >= 0 && target < count) out[target] -= C(own * slope.scale);
}

template <class T> void gradients(const ClassBatch &batch, const ClassSlope *slopes) {
  Tile<T> tile(batch, class_tile);
  for (int64_t start = 0; start < batch.classes; start += tile.width()) {
    int64_t count = std::min(tile.width(), batch.classes - start);
    tile.load(start, count);
    for (int64_t line = 0; line < batch.lines; line++)
      slope_of(batch, line, slopes[line], tile.row(line, start), tile.result(line, start), start, count);
    tile.store(start, count);
  }
}

template <class T> constexpr CrossEntropyKernel kernel() { return {losses<T>, gradients<T>}; }

} // namespace

extern const CrossEntropies cross_entropies = {{kernel<double>(), kernel<float>(), kernel<Float16>(), kernel<BFloat16>()}};

} // namespace orchard::ORCHARD_ISA
