#include "softmax.h"

#include "../log_sum_exp.h"
#include "../streamed.h"
#include "tuning.h"

namespace orchard::ORCHARD_ISA {
namespace {

using tuning::softmax::tile;

constexpr SoftmaxState nothing{-std::numeric_limits<double>::infinity(), 0};

// Adds elements to a state, and prefetches as many after them, which are usually needed next.
template <class C> void include(Softmax operation, SoftmaxState &state, const C *x, const C *y, int64_t count) {
  Fetch<C> next{x + count};
  if (operation == Softmax::softmaxGradient)
    state.sum += summed(count, [=](int64_t i) { return double(x[i]) * double(y[i]); }, next);
  else if (operation == Softmax::logSoftmaxGradient)
    state.sum += summed(count, [=](int64_t i) { return double(x[i]); });
  else {
    ExponentialSum updated{state.largest, state.sum};
    include(updated, x, count, next);
    state = {updated.largest, updated.sum};
  }
}

SoftmaxState merged_states(Softmax operation, SoftmaxState a, SoftmaxState b) {
  if (is_gradient(operation)) return {0, a.sum + b.sum};
  ExponentialSum both = merged({a.largest, a.sum}, {b.largest, b.sum});
  return {both.largest, both.sum};
}

// Returns NaN if the largest element is infinite, so that the results are NaN.
template <class C> C top_of(double largest) {
  return std::isinf(largest) ? std::numeric_limits<C>::quiet_NaN() : C(largest);
}

template <class C>
void results_of(Softmax operation, const C *x, const C *y, C *out, int64_t count, SoftmaxState state) {
  C top = top_of<C>(state.largest);
  C total = C(state.sum), share = C(1 / state.sum), logarithm = C(std::log(state.sum));
  auto each = [=](auto result) {
    for (int64_t i = 0; i < count; i++) out[i] = result(i);
  };
  switch (operation) {
  case Softmax::softmax: return each([=](int64_t i) { return exponential(C(x[i] - top)) * share; });
  case Softmax::logSoftmax: return each([=](int64_t i) { return (x[i] - top) - logarithm; });
  case Softmax::softmaxGradient: return each([=](int64_t i) { return y[i] * (x[i] - total); });
  case Softmax::logSoftmaxGradient: return each([=](int64_t i) { return x[i] - exponential(y[i]) * total; });
  case Softmax::count: break;
  }
}

// ---------------------------------------------------------------- adjacent elements of a slice

// Elements in the compute type: the original ones, or a copy in a buffer.
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

template <class T> SoftmaxState part_state(Softmax operation, const char *x, const char *y, int64_t count) {
  const T *from = reinterpret_cast<const T *>(x), *second = reinterpret_cast<const T *>(y);
  WideRow<T> wide_x, wide_y;
  SoftmaxState state = nothing;
  for (int64_t start = 0; start < count; start += tile) {
    int64_t size = std::min(tile, count - start);
    const Compute<T> *elements = wide_x.of(from + start, size),
                     *other = is_gradient(operation) ? wide_y.of(second + start, size) : nullptr;
    include(operation, state, elements, other, size);
  }
  return state;
}

template <class T>
void part_results(Softmax operation, const char *x, const char *y, char *out, int64_t count, SoftmaxState state,
                  bool is_streamed) {
  const T *from = reinterpret_cast<const T *>(x), *second = reinterpret_cast<const T *>(y);
  T *to = reinterpret_cast<T *>(out);
  WideRow<T> wide_x, wide_y;
  ResultRow<T, tile> results(is_streamed);
  for (int64_t start = 0; start < count; start += tile) {
    int64_t size = std::min(tile, count - start);
    const Compute<T> *elements = wide_x.of(from + start, size),
                     *other = is_gradient(operation) ? wide_y.of(second + start, size) : nullptr;
    results_of(operation, elements, other, results.begin(to + start), size, state);
    results.end(to + start, size);
  }
  results.finish();
}

// ---------------------------------------------------------------- whole slices

// For a slice that fits in the cache: its exponentials are stored.
template <class C> void softmax(const C *x, C *out, int64_t count) {
  C share = C(1 / exponentials<true>(x, largest(x, count), out, count));
  for (int64_t i = 0; i < count; i++) out[i] *= share;
}

template <class C> void whole_slice(Softmax operation, const C *x, const C *y, C *out, int64_t count) {
  if (operation == Softmax::softmax) return softmax(x, out, count);
  SoftmaxState state = nothing;
  for (int64_t start = 0; start < count; start += tile)
    include(operation, state, x + start, y + start, std::min(tile, count - start));
  results_of(operation, x, y, out, count, state);
}

template <class T> void gather(const T *from, int64_t along, int64_t length, Compute<T> *to) {
  if (along == 1) return widen(from, to, length);
  for (int64_t k = 0; k < length; k++) to[k] = load(from[k * along]);
}

// The first half of the scratch memory, which held x, is no longer needed.
template <class T> void write(const Compute<T> *results, const SoftmaxBatch &batch) {
  T *out = reinterpret_cast<T *>(batch.out);
  if (batch.along[2] == 1)
    return write_results(results, reinterpret_cast<T *>(batch.scratch), out, batch.length, batch.is_streamed);
  for (int64_t k = 0; k < batch.length; k++) out[k * batch.along[2]] = store<T>(results[k]);
}

template <class T> void run_slice(Softmax operation, const SoftmaxBatch &batch) {
  using C = Compute<T>;
  const T *x = reinterpret_cast<const T *>(batch.x), *y = reinterpret_cast<const T *>(batch.second);
  C *first = reinterpret_cast<C *>(batch.scratch), *second = first + batch.length;
  if constexpr (std::is_same_v<T, C>) {
    if (batch.has_adjacent_elements()) {
      whole_slice(operation, x, y, batch.is_streamed ? second : reinterpret_cast<T *>(batch.out), batch.length);
      if (batch.is_streamed) write<T>(second, batch);
      return;
    }
  }
  gather(x, batch.along[0], batch.length, first);
  if (is_gradient(operation)) gather(y, batch.along[1], batch.length, second);
  whole_slice(operation, first, second, second, batch.length);
  write<T>(second, batch);
}

// ---------------------------------------------------------------- slices side by side

// A row has an element of each slice. Rows are read twice: for the states of the slices, and for the results.
template <class T> class Columns {
public:
  using C = Compute<T>;

  Columns(Softmax operation, const SoftmaxBatch &batch) : operation_(operation), batch_(batch) {}

  void run() {
    if (is_gradient(operation_)) add_up();
    else add_exponentials();
    ResultRow<T, max_softmax_slices> results(batch_.is_streamed);
    for (int64_t k = 0; k < batch_.length; k++) {
      T *to = reinterpret_cast<T *>(batch_.out) + k * batch_.along[2];
      write_row(wide_x_.of(row(batch_.x, 0, k), batch_.slices),
                wide_y_.of(row(batch_.second, 1, k), is_gradient(operation_) ? batch_.slices : 0), results.begin(to));
      results.end(to, batch_.slices);
      fetch(k + rows_ahead);
    }
    results.finish();
  }

private:
  static constexpr int64_t rows_ahead = 4;

  const T *row(const char *operand, int which, int64_t k) const {
    return reinterpret_cast<const T *>(operand) + k * batch_.along[which];
  }

  void fetch(int64_t k) const {
    const char *next_row = reinterpret_cast<const char *>(row(batch_.x, 0, std::min(k, batch_.length - 1)));
    for (int64_t at = 0; at < batch_.slices * int64_t(sizeof(T)); at += stream_line)
      __builtin_prefetch(next_row + at, 0, 2);
  }

  void add_exponentials() {
    ExponentialColumns<C, max_softmax_slices> columns(batch_.slices);
    for_each_row_block<T, max_softmax_slices>(
        batch_.length, batch_.slices, [&](int64_t k) { return row(batch_.x, 0, k); },
        [&](auto rows, const RowBlock<C> &block, int64_t) { columns.template include<rows>(block); });
    for (int64_t slice = 0; slice < batch_.slices; slice++) {
      tops_[slice] = top_of<C>(columns.largest(slice));
      totals_[slice] = C(operation_ == Softmax::softmax ? 1 / columns.sum(slice) : std::log(columns.sum(slice)));
    }
  }

  void add_up() {
    double sums[max_softmax_slices] = {};
    for (int64_t k = 0; k < batch_.length; k++) {
      const C *x = wide_x_.of(row(batch_.x, 0, k), batch_.slices),
              *y = wide_y_.of(row(batch_.second, 1, k), batch_.slices);
      if (operation_ == Softmax::softmaxGradient)
        for (int64_t slice = 0; slice < batch_.slices; slice++) sums[slice] += double(x[slice]) * double(y[slice]);
      else
        for (int64_t slice = 0; slice < batch_.slices; slice++) sums[slice] += double(x[slice]);
    }
    for (int64_t slice = 0; slice < batch_.slices; slice++) totals_[slice] = C(sums[slice]);
  }

  void write_row(const C *x, const C *y, C *__restrict out) const {
    auto each = [&](auto result) {
      for (int64_t slice = 0; slice < batch_.slices; slice++)
        out[slice] = result(x[slice], y[slice], tops_[slice], totals_[slice]);
    };
    switch (operation_) {
    case Softmax::softmax: return each([](C value, C, C top, C share) { return exponential(C(value - top)) * share; });
    case Softmax::logSoftmax: return each([](C value, C, C top, C logarithm) { return (value - top) - logarithm; });
    case Softmax::softmaxGradient: return each([](C value, C result, C, C total) { return result * (value - total); });
    case Softmax::logSoftmaxGradient:
      return each([](C value, C result, C, C total) { return value - exponential(result) * total; });
    case Softmax::count: break;
    }
  }

  Softmax operation_;
  const SoftmaxBatch &batch_;
  C tops_[max_softmax_slices],
      totals_[max_softmax_slices]; // the largest elements; the sums of exponentials, or of gradients
  WideRow<T> wide_x_, wide_y_;
};

template <class T> void run(Softmax operation, const SoftmaxBatch &batch) {
  if (batch.slices > 1) Columns<T>(operation, batch).run();
  else run_slice<T>(operation, batch);
}

template <class T> constexpr SoftmaxKernel kernel() { return {run<T>, part_state<T>, merged_states, part_results<T>}; }

} // namespace

extern const Softmaxes softmaxes = {{kernel<double>(), kernel<float>(), kernel<Float16>(), kernel<BFloat16>()}};

} // namespace orchard::ORCHARD_ISA
