// Counts, means and sums of squared deviations of elements that are added in pieces: adjacent elements of one slice, or
// rows of columns.
//
// The deviations of each piece are from the piece's mean; the pieces are merged as in Chan, Golub and LeVeque,
// "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
#pragma once

#include "lanes.h"
#include "row_blocks.h"

namespace orchard::ORCHARD_ISA {

struct Moments {
  double count = 0, mean = 0, squares = 0; // squares: Σ (x - mean)²
};

inline Moments merged(const Moments &a, const Moments &b) {
  if (b.count == 0) return a;
  double count = a.count + b.count, difference = b.mean - a.mean;
  return {count, a.mean + difference * (b.count / count),
          a.squares + b.squares + difference * difference * (a.count * b.count / count)};
}

// Σ (x - mean)²
template <class C, class Meanwhile = Nothing>
inline double squares_around(double mean, const C *x, int64_t count, Meanwhile meanwhile = {}) {
  return summed(count, [=](int64_t i) { return (double(x[i]) - mean) * (double(x[i]) - mean); }, meanwhile);
}

// Returns the moments of some elements. They are read twice and should fit in the L1 cache.
template <class C, class Meanwhile = Nothing>
inline Moments moments_of(const C *x, int64_t count, Meanwhile meanwhile = {}) {
  double mean = summed(count, [=](int64_t i) { return double(x[i]); }) / double(count);
  return {double(count), mean, squares_around(mean, x, count, meanwhile)};
}

// Computes the moments of up to `most` adjacent columns. The deviations in a block of rows are computed in registers.
template <class C, int64_t most> class MomentColumns {
public:
  explicit MomentColumns(int64_t width) : width_(width) {}

  Moments of(int64_t column) const { return {double(count_), means_[column], squares_[column]}; }

  template <int rows> void include(const RowBlock<C> &block) {
    double before = double(count_), share = rows / (before + rows);
    count_ += rows;
    for (int64_t j = 0; j < width_; j += lanes<double>) {
      block.template fetch_next<rows>(j);
      include_lanes<rows>(block, j, share, before * share);
    }
  }

private:
  // Merges the block with the earlier rows, as `merged` does. `share` is the block's fraction of all rows, and `weight`
  // is the product of both counts divided by their sum.
  template <int rows> void include_lanes(const RowBlock<C> &block, int64_t j, double share, double weight) {
    Vector<double> x[rows], mean = {}, squares = load_vector(squares_ + j), earlier = load_vector(means_ + j);
    for (int row = 0; row < rows; row++) x[row] = load_some_wide(block.rows[row] + j, width_ - j);
    for (int row = 0; row < rows; row++) mean += x[row];
    mean *= 1.0 / rows;
    for (int row = 0; row < rows; row++) x[row] -= mean;
    for (int row = 0; row < rows; row++) squares = multiply_add<double>(x[row], x[row], squares);
    Vector<double> difference = mean - earlier;
    store_vector(Vector<double>(multiply_add<double>(difference, share, earlier)), means_ + j);
    store_vector(Vector<double>(squares + difference * weight * difference),
                 squares_ + j); // in this order the result is 0 if there were no rows before
  }

  static_assert(most % lanes<double> == 0, "columns are whole vectors");
  int64_t width_, count_ = 0;
  alignas(64) double means_[most] = {};
  alignas(64) double squares_[most] = {};
};

} // namespace orchard::ORCHARD_ISA
