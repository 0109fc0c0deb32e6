// Σ exp(x) as exp(largest) · sum, which does not overflow. The elements are added in pieces: adjacent elements of one
// slice, or rows of columns.
#pragma once

#include "attention/exponential_vector.h"
#include "lanes.h"
#include "row_blocks.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {

// `sum` is Σ exp(x - largest), or Σ exp(x) if the largest element is infinite. It is NaN if an element is NaN;
// `largest` never is.
struct ExponentialSum {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
};

inline double rescaled(const ExponentialSum &state, double largest) {
  double before = shift_of(state.largest), after = shift_of(largest);
  return state.sum == 0 || before == after ? state.sum : state.sum * std::exp(before - after);
}

inline ExponentialSum merged(const ExponentialSum &a, const ExponentialSum &b) {
  double top = std::max(a.largest, b.largest);
  return {top, rescaled(a, top) + rescaled(b, top)};
}

// Adds elements to the sum. They are read twice and should fit in the L1 cache.
template <class C, class Meanwhile = Nothing>
inline void include(ExponentialSum &state, const C *x, int64_t count, Meanwhile meanwhile = {}) {
  double top = std::max(state.largest, double(largest(x, count)));
  state.sum =
      rescaled(state, top) + exponentials<false>(x, C(shift_of(top)), static_cast<C *>(nullptr), count, meanwhile);
  state.largest = top;
}

// eˣ of each lane, for x ≤ 0.
inline Vector<float> exponential_lanes(Vector<float> x) { return exponential(x); }
inline Vector<double> exponential_lanes(Vector<double> x) {
  alignas(64) double each[lanes<double>];
  store_vector(x, each);
  for (double &value : each) value = exponential(value);
  return load_vector(each);
}

template <class C> inline Vector<C> shift_lanes(Vector<C> largest) {
  const Vector<C> none = {};
  return (largest - largest) == none ? largest : none; // ∞ - ∞ is NaN
}

// The sums of exponentials of up to `most` adjacent columns. In a block of rows, the exponentials are summed in type C,
// since they are positive; the sums of blocks are added in float64.
template <class C, int64_t most> class ExponentialColumns {
public:
  explicit ExponentialColumns(int64_t width) : width_(width) {
    for (int64_t j = 0; j < most; j++) tops_[j] = -std::numeric_limits<C>::infinity(), sums_[j] = 0;
  }

  C largest(int64_t column) const { return tops_[column]; }
  double sum(int64_t column) const { return sums_[column]; }

  template <int rows> void include(const RowBlock<C> &block) {
    alignas(64) C block_sums[most], scales[most];
    for (int64_t j = 0; j < width_; j += lanes<C>) {
      block.template fetch_next<rows>(j);
      include_lanes<rows>(block, j, block_sums, scales);
    }
    for (int64_t j = 0; j < width_; j++)
      sums_[j] = (sums_[j] == 0 ? 0 : sums_[j] * double(scales[j])) + double(block_sums[j]);
  }

private:
  template <int rows> void include_lanes(const RowBlock<C> &block, int64_t j, C *block_sums, C *scales) {
    Vector<C> x[rows], before = load_vector(tops_ + j), top = before, sum = {};
    for (int row = 0; row < rows; row++) x[row] = load_some(block.rows[row] + j, width_ - j);
    for (int row = 0; row < rows; row++) top = x[row] > top ? x[row] : top;
    Vector<C> shift = shift_lanes<C>(top);
    for (int row = 0; row < rows; row++) sum += exponential_lanes(Vector<C>(x[row] - shift));
    store_vector(top, tops_ + j);
    store_vector(sum, block_sums + j);
    store_vector(exponential_lanes(Vector<C>(shift_lanes<C>(before) - shift)), scales + j);
  }

  static_assert(most % lanes<C> == 0, "columns are whole vectors");
  int64_t width_;
  alignas(64) C tops_[most];
  alignas(64) double sums_[most];
};

} // namespace orchard::ORCHARD_ISA
