// Reductions that read adjacent elements twice while they are in the L1 cache, so that memory is read once: variance,
// log-sum-exp, and the largest and smallest element with its index.
//
// Each has `add(state, x, count, index)` for adjacent elements of one result, and `add_columns` for rows of elements of
// adjacent results.
#pragma once

#include "../log_sum_exp.h"
#include "../moments.h"
#include "folds.h"
#include "tuning.h"

namespace orchard::ORCHARD_ISA {

// Calls use(x, size, fetch) for each piece. The second pass over a piece prefetches the next one; after the last piece,
// the following elements are prefetched too, since they are usually needed next.
template <class C, class Use> inline void for_each_piece(const C *x, int64_t count, Use &&use) {
  constexpr int64_t piece = tuning::reduction::two_pass_piece;
  for (int64_t start = 0; start < count; start += piece) {
    int64_t size = std::min(piece, count - start);
    use(x + start, size, Fetch<C>{x + start + size});
  }
}

template <class C> struct Variance : FoldFacts {
  using FoldFacts::FoldFacts;
  using State = Moments;
  static State identity() { return {}; }
  void merge(State &a, const State &b) const { a = merged(a, b); }
  void add(State &state, const C *x, int64_t count, int64_t) const {
    for_each_piece(x, count, [&](const C *piece, int64_t size, Fetch<C> fetch) {
      state = merged(state, moments_of(piece, size, fetch));
    });
  }

  template <class Rows> void add_columns(const Rows &rows, State *states, int64_t step, int64_t) const {
    MomentColumns<C, tuning::reduction::reduction_columns> columns(rows.width);
    rows.each_block([&](auto size, const RowBlock<C> &block) { columns.template include<size>(block); });
    for (int64_t j = 0; j < rows.width; j++) states[j * step] = columns.of(j);
  }

  double result(const State &state) const {
    double freedom = std::max(0.0, double(facts.count) - facts.parameter);
    return facts.count == 0 ? std::nan("") : state.squares / freedom;
  }
};
FLOAT_REDUCTION(var, Variance)

template <class C> struct Deviation : Variance<C> {
  using Variance<C>::Variance;
  double result(const typename Variance<C>::State &state) const { return std::sqrt(Variance<C>::result(state)); }
};
FLOAT_REDUCTION(std, Deviation)

// log Σ exp(x) = shift + log Σ exp(x - shift), with the largest element as shift (0 if that is infinite).
template <class C> struct LogSumExp : FoldFacts {
  using FoldFacts::FoldFacts;
  using State = ExponentialSum;
  static State identity() { return {}; }
  void merge(State &a, const State &b) const { a = merged(a, b); }
  void add(State &state, const C *x, int64_t count, int64_t) const {
    bool is_nan = state.sum != state.sum;
    for_each_piece(x, count, [&](const C *piece, int64_t size, Fetch<C> fetch) { include(state, piece, size, fetch); });
    if (!is_infinite(state.largest)) return;
    state.sum = sum_beside_infinity(is_nan || std::any_of(x, x + count, not_equal_itself));
  }

  template <class Rows> void add_columns(const Rows &rows, State *states, int64_t step, int64_t) const {
    ExponentialColumns<C, tuning::reduction::reduction_columns> columns(rows.width);
    rows.each_block([&](auto size, const RowBlock<C> &block) { columns.template include<size>(block); });
    for (int64_t j = 0; j < rows.width; j++) {
      states[j * step] = {double(columns.largest(j)), columns.sum(j)};
      if (!is_infinite(columns.largest(j))) continue;
      bool is_nan = false;
      rows.each_block([&](auto size, const RowBlock<C> &block) {
        for (int row = 0; row < size; row++) is_nan |= not_equal_itself(block.rows[row][j]);
      });
      states[j * step].sum = sum_beside_infinity(is_nan);
    }
  }

  double result(const State &state) const {
    bool is_infinity = is_infinite(state.largest) && state.sum == state.sum;
    return is_infinity ? state.largest : std::log(state.sum) + shift_of(state.largest);
  }

private:
  static bool not_equal_itself(C x) { return x != x; }
  static bool is_infinite(double largest) { return largest == std::numeric_limits<double>::infinity(); }
  // If +∞ is present, the other exponentials are irrelevant, except for NaN.
  static double sum_beside_infinity(bool is_nan) { return is_nan ? std::numeric_limits<double>::quiet_NaN() : 1; }
};
FLOAT_REDUCTION(logsumexp, LogSumExp)

// The largest (or smallest) element and its index, the first of equal ones. NaN counts as larger (or smaller) than all
// numbers.
template <class C, bool is_largest> struct Extremum : FoldFacts {
  using FoldFacts::FoldFacts;
  struct State {
    C value;
    int64_t index = -1; // -1: no element yet
  };
  static State identity() { return {}; }
  static C chosen(C a, C b) { return is_largest ? larger(a, b) : smaller(a, b); }
  static bool is_better(C x, C than) { return bool((is_largest ? x > than : x < than) | (x != x)) & (than == than); }

  void merge(State &a, const State &b) const {
    if (b.index >= 0 && (a.index < 0 || is_better(b.value, a.value))) a = b;
  }

  void add(State &state, const C *x, int64_t count, int64_t index) const {
    constexpr int lanes = 32;
    C best[lanes];
    for (C &value : best) value = x[0];
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes)
      for (int lane = 0; lane < lanes; lane++) best[lane] = chosen(best[lane], x[i + lane]);
    for (; i < count; i++) best[0] = chosen(best[0], x[i]);
    for (int lane = 1; lane < lanes; lane++) best[0] = chosen(best[0], best[lane]);
    if (state.index >= 0 && !is_better(best[0], state.value)) return;
    int64_t at = index_of_best(best[0], x, count);
    state = {x[at], index + at};
  }

  // Returns the index of the first element that equals the best one, or that is NaN.
  static int64_t index_of_best(C best, const C *x, int64_t count) {
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

  template <class Rows> void add_columns(const Rows &rows, State *states, int64_t step, int64_t index) const {
    C best[tuning::reduction::reduction_columns];
    int64_t at[tuning::reduction::reduction_columns];
    rows.each([&](const C *x, int64_t row) {
      if (row == 0)
        for (int64_t j = 0; j < rows.width; j++) best[j] = x[j], at[j] = index;
      else
        for (int64_t j = 0; j < rows.width; j++) {
          bool better = is_better(x[j], best[j]);
          best[j] = better ? x[j] : best[j];
          at[j] = better ? index + row : at[j];
        }
    });
    for (int64_t j = 0; j < rows.width; j++)
      if (rows.count > 0) states[j * step] = {best[j], at[j]};
  }

  Wide<C> result(const State &state) const { return Wide<C>(state.value); }
};
template <class C> using MaxWithIndex = Extremum<C, true>;
template <class C> using MinWithIndex = Extremum<C, false>;
REDUCTION(max, MaxWithIndex)
REDUCTION(min, MinWithIndex)

} // namespace orchard::ORCHARD_ISA
