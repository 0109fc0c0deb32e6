// Singular values of a bidiagonal matrix by the differential qd algorithm with shifts. It computes with the squares qᵢ
// of the diagonal and eᵢ of the other elements. All of them stay positive, so that small values keep their digits.
//
// Sources: K. Fernando and B. Parlett, "Accurate singular values and differential qd algorithms", 1994; B. Parlett and
// O. Marques, "An implementation of the dqds algorithm (positive case)", 2000.
#pragma once

#include "../isa.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <utility>

namespace orchard::ORCHARD_ISA {

struct QdArray {
  double *q, *e;
};

class Qd {
public:
  // `array` has the squares, and `other` memory for as many. Both are overwritten.
  Qd(QdArray array, QdArray other, int64_t count) : now_(array), next_(other), count_(count) {}

  // Stores the squares of the singular values in `values`, in any order. Returns false if this did not converge.
  bool iterate(double *values) {
    int64_t left = most_steps * count_;
    for (high_ = count_ - 1; high_ >= 0;) {
      start_block();
      while (high_ >= low_) {
        if (deflate(values)) continue;
        if (left-- == 0 || !step()) return false;
      }
      if (low_ > 0) shifted_ = -now_.e[low_ - 1], lost_ = 0;
    }
    return true;
  }

private:
  static constexpr int64_t most_steps = 30, removable = 3;
  static constexpr double negligible = 0x1p-104; // (ε / 2)², since elements are squares

  // Finds the last block without a negligible eᵢ. The e before it becomes minus the sum of its shifts, maybe -0.
  void start_block() {
    low_ = high_;
    smallest_[0] = 0;
    while (low_ > 0 && !std::signbit(now_.e[low_ - 1])) {
      if (now_.e[low_ - 1] <= negligible * (shifted_ + now_.q[low_])) now_.e[low_ - 1] = -shifted_;
      else low_--;
    }
    std::copy_n(now_.q, low_, next_.q);
    std::copy_n(now_.e, low_, next_.e);
  }

  // Removes one or two values that have converged.
  bool deflate(double *values) {
    const int64_t n = high_;
    double *q = now_.q, *e = now_.e;
    if (n == low_ || e[n - 1] <= negligible * (shifted_ + q[n])) {
      values[n] = shifted_ + q[n];
      remove(1);
      return true;
    }
    if (n - 1 > low_ && !(e[n - 2] <= negligible * shifted_)) return false;
    // The eigenvalues of a matrix of two rows, with few roundings (LAPACK's dlasq3).
    double large = q[n - 1], small = q[n];
    if (small > large) std::swap(large, small);
    const double half = 0.5 * ((large - small) + e[n - 1]);
    if (half != 0) {
      double root = small * (e[n - 1] / half);
      if (root <= half) root = small * (e[n - 1] / (half * (1 + std::sqrt(1 + root / half))));
      else root = small * (e[n - 1] / (half + std::sqrt(half) * std::sqrt(half + root)));
      const double sum = large + (root + e[n - 1]);
      small *= large / sum;
      large = sum;
    }
    values[n - 1] = shifted_ + large, values[n] = shifted_ + small;
    remove(2);
    return true;
  }

  void remove(int64_t count) {
    high_ -= count;
    for (int64_t at = 0; at < removable; at++) smallest_[at] = at + count < removable ? smallest_[at + count] : 0;
    for (int64_t at = 0; at < removable; at++) last_[at] = at + count < removable ? last_[at + count] : 0;
  }

  // Estimates the smallest value: if the last d is the smallest, by a Rayleigh quotient less its residual. The squares
  // of the vector's elements are 1, e/q, (e/q)(e/q), … from the end on.
  double bound() const {
    const double smallest = smallest_[0];
    if (!(smallest > 0)) return 0;
    if (smallest != last_[0]) return smallest / 4;
    constexpr double most = 0.563;
    double term = 1, sum = 0;
    for (int64_t i = high_ - 1; i >= low_; i--) {
      const double before = term;
      term *= now_.e[i] / now_.q[i];
      sum += term;
      if (100 * std::max(term, before) < sum || sum > most) break;
    }
    sum *= 1.05;
    return sum < most ? smallest * (1 - std::sqrt(sum)) / (1 + sum) : smallest / 4;
  }

  // One transform with a shift. If the shift was too large, it is repeated with a smaller one.
  bool step() {
    double shift = bound();
    for (int attempt = 0; !transform(shift); attempt++) {
      if (shift == 0) return false;
      const bool is_late = smallest_[1] > 0; // only the last d is negative: shift + d bounds the smallest value
      shift = attempt == 2 ? 0 : is_late ? std::max(0.0, (shift + smallest_[0]) * (1 - 2 * DBL_EPSILON)) : shift / 4;
    }
    std::swap(now_, next_);
    const double sum = shifted_ + (shift + lost_);
    lost_ += shift - (sum - shifted_);
    shifted_ = sum;
    if (is_split_) start_block();
    return true;
  }

  // Returns whether all elements stayed positive.
  bool transform(double shift) {
    const double *q = now_.q, *e = now_.e;
    double d = q[low_] - shift, smallest[removable] = {d, d, d}, last[removable] = {d, d, d}, least = DBL_MAX;
    for (int64_t i = low_; i < high_; i++) {
      const double sum = d + e[i], ratio = q[i + 1] / sum, other = e[i] * ratio;
      next_.q[i] = sum;
      next_.e[i] = other;
      d = d * ratio - shift;
      smallest[2] = smallest[1], smallest[1] = smallest[0], smallest[0] = d < smallest[0] ? d : smallest[0];
      last[2] = last[1], last[1] = last[0], last[0] = d;
      least = other < least ? other : least;
    }
    next_.q[high_] = d;
    std::copy_n(smallest, removable, smallest_);
    std::copy_n(last, removable, last_);
    is_split_ = least <= negligible * shifted_;
    return smallest[0] >= 0 && d == d;
  }

  QdArray now_, next_;
  int64_t count_, low_ = 0, high_ = 0;
  double shifted_ = 0, lost_ = 0; // the sum of shifts, and its rounding error
  // Of the last transform: the smallest d of all, of all but the last one, and of all but the last two; and these d.
  double smallest_[removable] = {}, last_[removable] = {};
  bool is_split_ = false;
};

} // namespace orchard::ORCHARD_ISA
