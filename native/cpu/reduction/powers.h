// Sums of powers, for norms of an order other than 0, 1, 2 and ±∞. Powers of adjacent elements are computed in float64,
// as a row, then added like the elements of a sum.
#pragma once

#include "../elementwise/math.h"
#include "folds.h"
#include "tuning.h"

namespace orchard::ORCHARD_ISA {

// powers[i] = |x[i]|^exponent, for an exponent of at least 1, by squaring. The loop over bits is outside, so that the
// loops over elements are vectorized.
template <class C> void whole_powers(const C *x, double *powers, int64_t count, int exponent) {
  constexpr int64_t piece = tuning::reduction::power_piece;
  double squares[piece];
  for (int64_t i = 0; i < count; i++) squares[i] = std::fabs(double(x[i]));
  const int odd = exponent & 1;
  for (int64_t i = 0; i < count; i++) powers[i] = odd ? squares[i] : 1.0;
  for (int rest = exponent >> 1; rest > 0; rest >>= 1) {
    for (int64_t i = 0; i < count; i++) squares[i] *= squares[i];
    if (rest & 1)
      for (int64_t i = 0; i < count; i++) powers[i] *= squares[i];
  }
}

// The same for any exponent p: e^(p ln |x|). Its relative error is about |p ln |x|| 2^-52, far below the rounding of
// float32 for every power that float32 can store. For float64, the C library's function has a smaller error.
inline void real_powers(const float *x, double *powers, int64_t count, double p) {
  for (int64_t i = 0; i < count; i++) powers[i] = exp(p * log(std::fabs(double(x[i]))));
}
inline void real_powers(const double *x, double *powers, int64_t count, double p) {
  for (int64_t i = 0; i < count; i++) powers[i] = std::pow(std::fabs(x[i]), p);
}

// Powers of up to `power_piece` elements.
template <class C> void powers_of(const C *x, double *powers, int64_t count, double p) {
  const int whole = p >= 1 && p <= tuning::reduction::largest_whole_power ? int(p) : 0;
  if (whole > 0 && double(whole) == p) whole_powers(x, powers, count, whole);
  else real_powers(x, powers, count, p);
}

// (Σ |x|ᵖ)^(1/p)
template <class C> struct NormP : FoldFacts {
  using FoldFacts::FoldFacts;
  using State = double;
  static State identity() { return 0; }
  void merge(State &a, const State &b) const { a += b; }
  double result(State a) const { return std::pow(a, 1 / facts.parameter); }

  // Adds at most `tile` elements.
  void add(State &state, const C *x, int64_t count, int64_t) const {
    double powers[tuning::reduction::tile];
    raise(x, powers, count);
    state += summed(count, [&](int64_t i) { return powers[i]; });
  }

  template <class Rows> void add_columns(const Rows &rows, State *states, int64_t step, int64_t) const {
    double sums[tuning::reduction::reduction_columns] = {}, powers[tuning::reduction::reduction_columns];
    rows.each([&](const C *x, int64_t) {
      raise(x, powers, rows.width);
      for (int64_t j = 0; j < rows.width; j++) sums[j] += powers[j];
    });
    for (int64_t j = 0; j < rows.width; j++) states[j * step] = sums[j];
  }

private:
  void raise(const C *x, double *powers, int64_t count) const {
    constexpr int64_t piece = tuning::reduction::power_piece;
    for (int64_t start = 0; start < count; start += piece)
      powers_of(x + start, powers + start, std::min(piece, count - start), facts.parameter);
  }
};
FLOAT_REDUCTION(normP, NormP)

} // namespace orchard::ORCHARD_ISA
