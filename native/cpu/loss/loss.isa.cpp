#include "loss.h"

#include "../elementwise/activations.h"
#include "../lanes.h"
#include "../streamed.h"
#include "tuning.h"

#include <algorithm>
#include <utility>

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
  const C *x, *t, *w, *v; // w and v are null if the loss has fewer operands
  C p, q;
};

// Calls use(elements, start, count) for tiles of a run.
template <class T, class Use> void for_each_tile(const LossRun &run, Use &&use) {
  using C = Compute<T>;
  C buffers[4][tile];
  for (int64_t start = 0; start < run.count; start += tile) {
    int64_t count = std::min(tile, run.count - start);
    auto operand = [&](int at) { return loaded<T>(run.operands[at], run.strides[at], start, count, buffers[at]); };
    use(Elements<C>{operand(loss_x), operand(loss_target), operand(loss_third), operand(loss_fourth),
                    C(run.parameters[0]), C(run.parameters[1])},
        start, count);
  }
}

// ---------------------------------------------------------------- formulas

template <Loss loss> struct LossFormula;

#define LOSS_VALUES                                                                                                    \
  [[maybe_unused]] T x, [[maybe_unused]] T t, [[maybe_unused]] T w, [[maybe_unused]] T v, [[maybe_unused]] T p,        \
      [[maybe_unused]] T q
#define LOSS(NAME, name, count, value, by_x, by_target, by_third)                                                      \
  template <> struct LossFormula<Loss::name> {                                                                         \
    static constexpr int operands = count;                                                                             \
    template <class T> static T of(LOSS_VALUES) { return value; }                                                      \
    template <class T> static T slope_by_x(LOSS_VALUES) { return by_x; }                                               \
    template <class T> static T slope_by_target(LOSS_VALUES) { return by_target; }                                     \
    template <class T> static T slope_by_third(LOSS_VALUES) { return by_third; }                                       \
  };
#include "../../../kernels/formulas/losses.h"
#undef LOSS
#undef LOSS_VALUES

// Operands never overlap a result; __restrict lets loops be vectorized without an aliasing check.
template <class Formula, class C, class Function>
void for_each_element(const Elements<C> &e, C *__restrict out, int64_t count, Function function) {
  const C *__restrict x = e.x, *__restrict t = e.t, *__restrict w = e.w, *__restrict v = e.v;
  const C p = e.p, q = e.q;
  for (int64_t i = 0; i < count; i++)
    out[i] = function(x[i], t[i], Formula::operands > 2 ? w[i] : C(1), Formula::operands > 3 ? v[i] : C(1), p, q);
}

// Computes the value of a loss, or its derivative with respect to an operand, of adjacent elements.
template <class C> using LossLoop = void (*)(const Elements<C> &, C *, int64_t);

template <class C> struct LossLoops {
  int operands;
  LossLoop<C> values, slopes[3];
};

template <Loss loss, class C> constexpr LossLoops<C> loops_of() {
  using Formula = LossFormula<loss>;
#define ORCHARD_LOSS_LOOP(function)                                                                                    \
  [](const Elements<C> &e, C *out, int64_t count) {                                                                    \
    for_each_element<Formula>(e, out, count,                                                                           \
                              [](C x, C t, C w, C v, C p, C q) { return Formula::function(x, t, w, v, p, q); });       \
  }
  return {Formula::operands,
          ORCHARD_LOSS_LOOP(of),
          {ORCHARD_LOSS_LOOP(slope_by_x), ORCHARD_LOSS_LOOP(slope_by_target), ORCHARD_LOSS_LOOP(slope_by_third)}};
#undef ORCHARD_LOSS_LOOP
}

template <class C, size_t... names> const LossLoops<C> &loops_among(Loss loss, std::index_sequence<names...>) {
  static constexpr LossLoops<C> all[] = {loops_of<static_cast<Loss>(names), C>()...};
  return all[static_cast<int>(loss)];
}

template <class C> const LossLoops<C> &loops_for(Loss loss) {
  return loops_among<C>(loss, std::make_index_sequence<static_cast<size_t>(Loss::count)>());
}

// ---------------------------------------------------------------- runs

template <class T> void values(Loss loss, const LossRun &run) {
  using C = Compute<T>;
  C out[tile];
  const LossLoops<C> &loops = loops_for<C>(loss);
  for_each_tile<T>(run, [&](const Elements<C> &e, int64_t start, int64_t count) {
    loops.values(e, out, count);
    stored<T>(out, run, loss_out, start, count);
  });
  if (run.is_streamed) orchard::streams().finish();
}

template <class T> double sum(Loss loss, const LossRun &run) {
  using C = Compute<T>;
  double total = 0;
  C values[tile];
  const LossLoops<C> &loops = loops_for<C>(loss);
  for_each_tile<T>(run, [&](const Elements<C> &e, int64_t, int64_t count) {
    loops.values(e, values, count);
    total += summed(count, [&](int64_t i) { return double(values[i]); });
  });
  return total;
}

template <class T> void gradients(Loss loss, const LossRun &run) {
  using C = Compute<T>;
  C scale_buffer[tile], out[tile];
  const LossLoops<C> &loops = loops_for<C>(loss);
  for_each_tile<T>(run, [&](const Elements<C> &e, int64_t start, int64_t count) {
    const C *scale = loaded<C>(run.operands[loss_scale], run.strides[loss_scale], start, count, scale_buffer);
    for (int by = 0; by < 3; by++) {
      const int result = loss_gradients[by];
      if (!run.operands[result]) continue;
      loops.slopes[by](e, out, count);
      for (int64_t i = 0; i < count; i++) out[i] *= scale[i] * C(run.factor);
      stored<T>(out, run, result, start, count);
    }
  });
  if (run.is_streamed) orchard::streams().finish();
}

template <class T> int operands_of(Loss loss) { return loops_for<Compute<T>>(loss).operands; }

template <class T> constexpr LossKernel kernel() { return {operands_of<T>, values<T>, sum<T>, gradients<T>}; }

} // namespace

extern const Losses losses = {{kernel<double>(), kernel<float>(), kernel<Float16>(), kernel<BFloat16>()}};

} // namespace orchard::ORCHARD_ISA
