#include "softmax.h"

#include "../log_sum_exp.h"
#include "../streamed.h"

namespace orchard::ORCHARD_ISA {
namespace {

constexpr int64_t tile = 2048; // adjacent elements that are looked at together: they stay in the first-level cache

bool is_gradient(Softmax code) { return code >= Softmax::softmax_gradient; }

constexpr SoftmaxState nothing{-std::numeric_limits<double>::infinity(), 0};

// Includes elements, and has memory bring as many that lie behind them: most often they are next.
template <class C> void include(Softmax code, SoftmaxState &state, const C *x, const C *y, int64_t count) {
  Fetch<C> next{x + count};
  if (code == Softmax::softmax_gradient) state.sum += summed(count, [=](int64_t i) { return double(x[i]) * double(y[i]); }, next);
  else if (code == Softmax::log_softmax_gradient) state.sum += summed(count, [=](int64_t i) { return double(x[i]); });
  else {
    ExponentialSum own{state.largest, state.sum};
    include(own, x, count, next);
    state = {own.largest, own.sum};
  }
}

SoftmaxState merged_states(Softmax code, SoftmaxState a, SoftmaxState b) {
  if (is_gradient(code)) return {0, a.sum + b.sum};
  ExponentialSum both = merged({a.largest, a.sum}, {b.largest, b.sum});
  return {both.largest, both.sum};
}

// NaN where the largest element is infinite: x - top is then, or the sum of exponentials is not of it.
template <class C> C top_of(double largest) { return std::isinf(largest) ? std::numeric_limits<C>::quiet_NaN() : C(largest); }

template <class C> void results_of(Softmax code, const C *x, const C *y, C *out, int64_t count, SoftmaxState state) {
  C top = top_of<C>(state.largest);
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

// ---------------------------------------------------------------- adjacent elements of a line

// Elements in the compute type, where they are or in a buffer.
template <class T> class WideRow {
public:
  using C = Compute<T>;
  const C *of(const T *row, int64_t count) {
    if constexpr (std::is_same_v<T, C>) return row;
    else {
      widen(row, wide_, count);
      return wide_;
    }
  }

private:
  C wide_[std::is_same_v<T, C> ? 1 : tile];
};

template <class T> SoftmaxState part_state(Softmax code, const char *x, const char *y, int64_t count) {
  const T *from = reinterpret_cast<const T *>(x), *second = reinterpret_cast<const T *>(y);
  WideRow<T> wide_x, wide_y;
  SoftmaxState state = nothing;
  for (int64_t start = 0; start < count; start += tile) {
    int64_t size = std::min(tile, count - start);
    const Compute<T> *own = wide_x.of(from + start, size), *other = is_gradient(code) ? wide_y.of(second + start, size) : nullptr;
    include(code, state, own, other, size);
  }
  return state;
}

template <class T>
void part_results(Softmax code, const char *x, const char *y, char *out, int64_t count, SoftmaxState state, bool is_streamed) {
  const T *from = reinterpret_cast<const T *>(x), *second = reinterpret_cast<const T *>(y);
  T *to = reinterpret_cast<T *>(out);
  WideRow<T> wide_x, wide_y;
  ResultRow<T, tile> results(is_streamed);
  for (int64_t start = 0; start < count; start += tile) {
    int64_t size = std::min(tile, count - start);
    const Compute<T> *own = wide_x.of(from + start, size), *other = is_gradient(code) ? wide_y.of(second + start, size) : nullptr;
    results_of(code, own, other, results.begin(to + start), size, state);
    results.end(to + start, size);
  }
  results.finish();
}

// ---------------------------------------------------------------- whole lines

// A line that stays in the cache: its exponentials are kept.
template <class C> void softmax(const C *x, C *out, int64_t count) {
  C share = C(1 / exponentials<true>(x, largest(x, count), out, count));
  for (int64_t i = 0; i < count; i++) out[i] *= share;
}

template <class C> void line(Softmax code, const C *x, const C *y, C *out, int64_t count) {
  if (code == Softmax::softmax) return softmax(x, out, count);
  SoftmaxState state = nothing;
  for (int64_t start = 0; start < count; start += tile) include(code, state, x + start, y + start, std::min(tile, count - start));
  results_of(code, x, y, out, count, state);
}

template <class T> void gather(const T *from, int64_t along, int64_t length, Compute<T> *to) {
  if (along == 1) return widen(from, to, length);
  for (int64_t k = 0; k < length; k++) to[k] = load(from[k * along]);
}

// The first half of the scratch memory, where x was, is free by now.
template <class T> void write(const Compute<T> *results, const SoftmaxBatch &batch) {
  T *out = reinterpret_cast<T *>(batch.out);
  if (batch.along[2] == 1) return write_results(results, reinterpret_cast<T *>(batch.scratch), out, batch.length, batch.is_streamed);
  for (int64_t k = 0; k < batch.length; k++) out[k * batch.along[2]] = store<T>(results[k]);
}

template <class T> void run_line(Softmax code, const SoftmaxBatch &batch) {
  using C = Compute<T>;
  const T *x = reinterpret_cast<const T *>(batch.x), *y = reinterpret_cast<const T *>(batch.second);
  C *first = reinterpret_cast<C *>(batch.scratch), *second = first + batch.length;
  if constexpr (std::is_same_v<T, C>) {
    if (batch.has_adjacent_elements()) {
      line(code, x, y, batch.is_streamed ? second : reinterpret_cast<T *>(batch.out), batch.length);
      if (batch.is_streamed) write<T>(second, batch);
      return;
    }
  }
  gather(x, batch.along[0], batch.length, first);
  if (is_gradient(code)) gather(y, batch.along[1], batch.length, second);
  line(code, first, second, second, batch.length);
  write<T>(second, batch);
}

// ---------------------------------------------------------------- lines side by side

// A row holds an element of each line. Rows are read twice: for what the results need to know of each line, and for the results.
template <class T> class Columns {
public:
  using C = Compute<T>;

  Columns(Softmax code, const SoftmaxBatch &batch) : code_(code), batch_(batch) {}

  void run() {
    if (is_gradient(code_)) add_up();
    else add_exponentials();
    ResultRow<T, softmax_lines> results(batch_.is_streamed);
    for (int64_t k = 0; k < batch_.length; k++) {
      T *to = reinterpret_cast<T *>(batch_.out) + k * batch_.along[2];
      write_row(wide_x_.of(row(batch_.x, 0, k), batch_.lines), wide_y_.of(row(batch_.second, 1, k), is_gradient(code_) ? batch_.lines : 0), results.begin(to));
      results.end(to, batch_.lines);
      fetch(k + rows_ahead);
    }
    results.finish();
  }

private:
  static constexpr int64_t rows_ahead = 4;

  const T *row(const char *operand, int which, int64_t k) const { return reinterpret_cast<const T *>(operand) + k * batch_.along[which]; }

  void fetch(int64_t k) const {
    const char *own = reinterpret_cast<const char *>(row(batch_.x, 0, std::min(k, batch_.length - 1)));
    for (int64_t at = 0; at < batch_.lines * int64_t(sizeof(T)); at += stream_line) __builtin_prefetch(own + at, 0, 2);
  }

  void add_exponentials() {
    ExponentialColumns<C, softmax_lines> columns(batch_.lines);
    for_each_row_block<T, softmax_lines>(batch_.length, batch_.lines, [&](int64_t k) { return row(batch_.x, 0, k); },
                                         [&](auto rows, const RowBlock<C> &block, int64_t) { columns.template include<rows>(block); });
    for (int64_t line = 0; line < batch_.lines; line++) {
      tops_[line] = top_of<C>(columns.largest(line));
      totals_[line] = C(code_ == Softmax::softmax ? 1 / columns.sum(line) : std::log(columns.sum(line)));
    }
  }

  void add_up() {
    double sums[softmax_lines] = {};
    for (int64_t k = 0; k < batch_.length; k++) {
      const C *x = wide_x_.of(row(batch_.x, 0, k), batch_.lines), *y = wide_y_.of(row(batch_.second, 1, k), batch_.lines);
      if (code_ == Softmax::softmax_gradient)
        for (int64_t line = 0; line < batch_.lines; line++) sums[line] += double(x[line]) * double(y[line]);
      else
        for (int64_t line = 0; line < batch_.lines; line++) sums[line] += double(x[line]);
    }
    for (int64_t line = 0; line < batch_.lines; line++) totals_[line] = C(sums[line]);
  }

  void write_row(const C *x, const C *y, C *__restrict out) const {
    auto each = [&](auto result) {
      for (int64_t line = 0; line < batch_.lines; line++) out[line] = result(x[line], y[line], tops_[line], totals_[line]);
    };
    switch (code_) {
    case Softmax::softmax: return each([](C own, C, C top, C share) { return exponential(C(own - top)) * share; });
    case Softmax::log_softmax: return each([](C own, C, C top, C logarithm) { return (own - top) - logarithm; });
    case Softmax::softmax_gradient: return each([](C own, C result, C, C total) { return result * (own - total); });
    case Softmax::log_softmax_gradient: return each([](C own, C result, C, C total) { return own - exponential(result) * total; });
    }
  }

  Softmax code_;
  const SoftmaxBatch &batch_;
  C tops_[softmax_lines], totals_[softmax_lines]; // the largest element; what its exponentials, or the gradients, come to
  WideRow<T> wide_x_, wide_y_;
};

template <class T> void run(Softmax code, const SoftmaxBatch &batch) {
  if (batch.lines > 1) Columns<T>(code, batch).run();
  else run_line<T>(code, batch);
}

template <class T> constexpr SoftmaxKernel kernel() { return {run<T>, part_state<T>, merged_states, part_results<T>}; }

} // namespace

extern const Softmaxes softmaxes = {{kernel<double>(), kernel<float>(), kernel<Float16>(), kernel<BFloat16>()}};

} // namespace orchard::ORCHARD_ISA
