// Operations that look at adjacent elements twice while these are in the first-level cache, and so read memory once: variance, log-sum-exp,
// and the largest and smallest element with its index.
//
// Each has `add(state, x, count, index)` for adjacent elements of one result, and `add_columns` for rows of elements of adjacent results.
#pragma once

#include "folds.h"

namespace orchard::ORCHARD_ISA {

// Rows of reduction_columns elements that fit into the first-level cache.
constexpr int64_t twice_rows = 8;

// Deviations from a block's own mean, then blocks together: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for
// computing sample variances", 1979.
template <class C> struct Variance : FoldFacts {
  using FoldFacts::FoldFacts;
  struct State {
    double count = 0, mean = 0, squares = 0; // squares: sum of (x - mean)²
  };
  static State identity() { return {}; }

  void merge(State &a, const State &b) const {
    if (b.count == 0) return;
    double count = a.count + b.count, difference = b.mean - a.mean;
    a.mean += difference * (b.count / count);
    a.squares += b.squares + difference * difference * (a.count * b.count / count);
    a.count = count;
  }

  void add(State &state, const C *x, int64_t count, int64_t) const {
    State own;
    own.count = double(count);
    own.mean = summed(count, [=](int64_t i) { return double(x[i]); }) / own.count;
    double mean = own.mean;
    own.squares = summed(count, [=](int64_t i) { return (double(x[i]) - mean) * (double(x[i]) - mean); });
    merge(state, own);
  }

  template <class Rows> void add_columns(Rows &&rows, int64_t count, int64_t width, State *states, int64_t step, int64_t) const {
    double means[reduction_columns] = {}, squares[reduction_columns] = {};
    for (int64_t first = 0; first < count; first += twice_rows)
      add_rows(rows, first, std::min(count, first + twice_rows), width, means, squares);
    for (int64_t j = 0; j < width; j++)
      if (count > 0) states[j * step] = {double(count), means[j], squares[j]};
  }

  // `merge` for each column, with rows that stay in the cache for their second time. `first` rows are there already.
  template <class Rows>
  static void add_rows(Rows &&rows, int64_t first, int64_t end, int64_t width, double *means, double *squares) {
    double own[reduction_columns] = {}, deviations[reduction_columns] = {};
    double count = double(end - first), share = count / double(end);
    for (int64_t row = first; row < end; row++) {
      const C *x = rows(row);
      for (int64_t j = 0; j < width; j++) own[j] += double(x[j]);
    }
    for (int64_t j = 0; j < width; j++) own[j] /= count;
    for (int64_t row = first; row < end; row++) {
      const C *x = rows(row);
      for (int64_t j = 0; j < width; j++) deviations[j] += (double(x[j]) - own[j]) * (double(x[j]) - own[j]);
    }
    for (int64_t j = 0; j < width; j++) {
      double difference = own[j] - means[j];
      means[j] += difference * share;
      squares[j] += deviations[j] + difference * (double(first) * share) * difference; // in this order: 0 where none came before
    }
  }

  double result(const State &state) const {
    double freedom = std::max(0.0, double(facts.count) - facts.parameter);
    return facts.count == 0 ? std::nan("") : state.squares / freedom;
  }
};

template <class C> struct Deviation : Variance<C> {
  using Variance<C>::Variance;
  double result(const typename Variance<C>::State &state) const { return std::sqrt(Variance<C>::result(state)); }
};

// log Σ exp(x) = shift + log Σ exp(x - shift), the shift being the largest element (0 where that is infinite).
template <class C> struct LogSumExp : FoldFacts {
  using FoldFacts::FoldFacts;
  struct State {
    double largest = least<double>(), sum = 0;
  };
  static State identity() { return {}; }
  static double rescaled(const State &state, double largest) {
    return state.sum == 0 ? 0 : state.sum * std::exp(shift_of(state.largest) - shift_of(largest));
  }

  void merge(State &a, const State &b) const {
    double largest = larger(a.largest, b.largest);
    a = {largest, rescaled(a, largest) + rescaled(b, largest)};
  }

  void add(State &state, const C *x, int64_t count, int64_t) const {
    C top = orchard::ORCHARD_ISA::largest(x, count);
    merge(state, {double(top), exponentials<false>(x, shift_of(top), static_cast<C *>(nullptr), count)});
  }

  template <class Rows> void add_columns(Rows &&rows, int64_t count, int64_t width, State *states, int64_t step, int64_t) const {
    C tops[reduction_columns];
    double sums[reduction_columns] = {};
    for (int64_t j = 0; j < width; j++) tops[j] = least<C>();
    for (int64_t first = 0; first < count; first += twice_rows)
      add_rows(rows, first, std::min(count, first + twice_rows), width, tops, sums);
    for (int64_t j = 0; j < width; j++) states[j * step] = {double(tops[j]), sums[j]};
  }

  // Rows that stay in the cache for their second time join each column.
  template <class Rows> static void add_rows(Rows &&rows, int64_t first, int64_t end, int64_t width, C *tops, double *sums) {
    C shifts[reduction_columns];
    for (int64_t j = 0; j < width; j++) shifts[j] = shift_of(tops[j]);
    for (int64_t row = first; row < end; row++) {
      const C *x = rows(row);
      for (int64_t j = 0; j < width; j++) tops[j] = larger(tops[j], x[j]);
    }
    for (int64_t j = 0; j < width; j++) {
      C shift = shift_of(tops[j]);
      sums[j] = sums[j] == 0 ? 0 : sums[j] * double(exponential(C(shifts[j] - shift)));
      shifts[j] = shift;
    }
    for (int64_t row = first; row < end; row++) {
      const C *x = rows(row);
      for (int64_t j = 0; j < width; j++) sums[j] += double(exponential(C(x[j] - shifts[j])));
    }
  }

  double result(const State &state) const {
    bool is_infinite = state.largest == std::numeric_limits<double>::infinity();
    return is_infinite ? state.largest : std::log(state.sum) + shift_of(state.largest);
  }
};

// The largest (or smallest) element and its index: of equal ones the first, of NaNs too, which are beyond all numbers.
template <class C, bool wants_largest> struct Extremum : FoldFacts {
  using FoldFacts::FoldFacts;
  struct State {
    C value;
    int64_t index = -1; // -1: no element yet
  };
  static State identity() { return {}; }
  static C chosen(C a, C b) { return wants_largest ? larger(a, b) : smaller(a, b); }
  static bool is_better(C x, C than) { return bool((wants_largest ? x > than : x < than) | (x != x)) & (than == than); }

  void merge(State &a, const State &b) const {
    if (b.index >= 0 && (a.index < 0 || is_better(b.value, a.value))) a = b;
  }

  void add(State &state, const C *x, int64_t count, int64_t index) const {
    constexpr int lanes = 32;
    C best[lanes];
    for (C &own : best) own = x[0];
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes)
      for (int lane = 0; lane < lanes; lane++) best[lane] = chosen(best[lane], x[i + lane]);
    for (; i < count; i++) best[0] = chosen(best[0], x[i]);
    for (int lane = 1; lane < lanes; lane++) best[0] = chosen(best[0], best[lane]);
    if (state.index >= 0 && !is_better(best[0], state.value)) return;
    int64_t at = place_of(best[0], x, count);
    state = {x[at], index + at};
  }

  // The first element that is the best one, which a NaN is where there is one.
  static int64_t place_of(C best, const C *x, int64_t count) {
    constexpr int block = 64;
    int64_t at = 0;
    for (bool found = false; !found && at + block <= count; at += found ? 0 : block) {
      uint8_t hits = 0;
      for (int i = 0; i < block; i++) hits |= uint8_t((x[at + i] == best) | (x[at + i] != x[at + i]));
      found = hits != 0;
    }
    while (x[at] != best && x[at] == x[at]) at++;
    return at;
  }

  template <class Rows> void add_columns(Rows &&rows, int64_t count, int64_t width, State *states, int64_t step, int64_t index) const {
    C best[reduction_columns];
    int64_t at[reduction_columns];
    for (int64_t row = 0; row < count; row++) {
      const C *x = rows(row);
      if (row == 0)
        for (int64_t j = 0; j < width; j++) best[j] = x[j], at[j] = index;
      else
        for (int64_t j = 0; j < width; j++) {
          bool better = is_better(x[j], best[j]);
          best[j] = better ? x[j] : best[j];
          at[j] = better ? index + row : at[j];
        }
    }
    for (int64_t j = 0; j < width; j++)
      if (count > 0) states[j * step] = {best[j], at[j]};
  }

  Wide<C> result(const State &state) const { return Wide<C>(state.value); }
};
template <class C> using MaxWithIndex = Extremum<C, true>;
template <class C> using MinWithIndex = Extremum<C, false>;

} // namespace orchard::ORCHARD_ISA
