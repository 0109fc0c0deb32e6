// The Schur form of a real matrix, by the QR algorithm with double shifts. Source: B. S. Garbow et al., EISPACK's hqr2,
// 1976, after J. G. F. Francis, "The QR transformation", 1961.
#pragma once

#include "schur.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace orchard::ORCHARD_ISA {

// See `to_schur` of schur.h. Without Q, only the rows and columns of the block that is iterated are transformed.
struct RealSchur {
  double *h, *v, *re, *im;
  int64_t n, stride;

  RealSchur(const RealProblem &problem, double *re, double *im)
      : h(problem.a), v(problem.q), re(re), im(im), n(problem.n), stride(problem.stride) {}

  // Returns whether the iteration converged.
  bool run() {
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = std::max<int64_t>(i - 1, 0); j < n; j++) norm_ += std::abs(at(i, j));
    int iteration = 0;
    for (int64_t last = n - 1; last >= 0;) {
      const int64_t first = start_of_block(last);
      if (first + 1 < last) {
        if (++iteration > 300) return false;
        sweep(first, last, iteration);
        continue;
      }
      if (first == last) {
        at(last, last) += shift_;
        re[last] = at(last, last), im[last] = 0;
      } else split(last);
      last = first - 1;
      iteration = 0;
    }
    return true;
  }

private:
  double norm_ = 0, shift_ = 0;
  static constexpr double epsilon = std::numeric_limits<double>::epsilon();

  double &at(int64_t i, int64_t j) { return h[i * stride + j]; }

  // Returns the first row of the block that ends with row `last`: a small element below the diagonal precedes it.
  int64_t start_of_block(int64_t last) {
    int64_t first = last;
    for (; first > 0; first--) {
      const double around = std::abs(at(first - 1, first - 1)) + std::abs(at(first, first));
      if (std::abs(at(first, first - 1)) < epsilon * (around == 0 ? norm_ : around)) break;
      if (at(first, first - 1) == 0) break;
    }
    return first;
  }

  // Finds the two eigenvalues of the block that ends with row `last`, and makes it triangular if they are real.
  void split(int64_t last) {
    const int64_t k = last - 1;
    const double product = at(last, k) * at(k, last), half = (at(k, k) - at(last, last)) / 2;
    const double square = half * half + product, root = std::sqrt(std::abs(square));
    at(last, last) += shift_;
    at(k, k) += shift_;
    const double corner = at(last, last);
    if (square < 0) {
      re[k] = re[last] = corner + half;
      im[k] = root, im[last] = -root;
      return;
    }
    const double z = half >= 0 ? half + root : half - root;
    re[k] = re[last] = corner + z;
    if (z != 0) re[last] = corner - product / z;
    im[k] = im[last] = 0;
    const double norm = std::hypot(at(last, k), z), p = at(last, k) / norm, q = z / norm;
    const auto rotate = [&](double &x, double &y) {
      const double old = x;
      x = q * old + p * y;
      y = q * y - p * old;
    };
    if (!v) return;
    for (int64_t j = k; j < n; j++) rotate(at(k, j), at(last, j));
    for (int64_t i = 0; i <= last; i++) rotate(at(i, k), at(i, last));
    for (int64_t i = 0; i < n; i++) rotate(v[i * stride + k], v[i * stride + last]);
  }

  // These determine the sum and the product of the shifts: the last two diagonal elements, and the product of the
  // trailing block's other two elements.
  struct Shifts {
    double x, y, w;
  };

  Shifts shifts_of(int64_t last, int iteration) {
    Shifts shifts = {at(last, last), at(last - 1, last - 1), at(last, last - 1) * at(last - 1, last)};
    if (iteration % 10 != 0) return shifts;
    // Exceptional shifts, which end cycles.
    shift_ += shifts.x;
    for (int64_t i = 0; i <= last; i++) at(i, i) -= shifts.x;
    const double size = std::abs(at(last, last - 1)) + std::abs(at(last - 1, last - 2));
    return {0.75 * size, 0.75 * size, -0.4375 * size * size};
  }

  // One iteration on the rows from `first` to `last`.
  void sweep(int64_t first, int64_t last, int iteration) {
    const Shifts shifts = shifts_of(last, iteration);
    double p = 0, q = 0, r = 0;
    int64_t start = last - 2;
    for (;; start--) { // two small elements in a row also start a sweep
      const double z = at(start, start), a = shifts.x - z, b = shifts.y - z;
      p = (a * b - shifts.w) / at(start + 1, start) + at(start, start + 1);
      q = at(start + 1, start + 1) - z - a - b;
      r = at(start + 2, start + 1);
      const double size = std::abs(p) + std::abs(q) + std::abs(r);
      p /= size, q /= size, r /= size;
      if (start == first) break;
      const double around = std::abs(at(start - 1, start - 1)) + std::abs(z) + std::abs(at(start + 1, start + 1));
      if (std::abs(at(start, start - 1)) * (std::abs(q) + std::abs(r)) < epsilon * (std::abs(p) * around)) break;
    }
    for (int64_t i = start + 2; i <= last; i++) {
      at(i, i - 2) = 0;
      if (i > start + 2) at(i, i - 3) = 0;
    }
    for (int64_t k = start; k < last; k++) {
      const bool is_last = k == last - 1;
      double size = 1;
      if (k != start) {
        p = at(k, k - 1), q = at(k + 1, k - 1), r = is_last ? 0 : at(k + 2, k - 1);
        size = std::abs(p) + std::abs(q) + std::abs(r);
        if (size == 0) continue;
        p /= size, q /= size, r /= size;
      }
      const double length = std::copysign(std::sqrt(p * p + q * q + r * r), p);
      if (length == 0) continue;
      if (k != start) at(k, k - 1) = -length * size;
      else if (first != start) at(k, k - 1) = -at(k, k - 1);
      reflect(k, first, last, {p, q, r}, length);
    }
  }

  // The first column of a reflection of three rows, or of two at the end.
  struct Triple {
    double p, q, r;
  };

  // Applies a reflection from both sides: x − (1, q, r) (x₀ + q x₁ + r x₂) (x, y, z)ᵀ.
  void reflect(int64_t k, int64_t first, int64_t last, const Triple &vector, double length) {
    const double p = vector.p + length, x = p / length, y = vector.q / length, z = vector.r / length;
    const double q = vector.q / p, r = vector.r / p;
    const int64_t end = v ? n : last + 1, begin = v ? 0 : first, below = std::min(last, k + 3) + 1;
    if (k == last - 1) {
      from_left(&at(k, k), end - k, q, x, y);
      from_right(&at(begin, k), below - begin, q, x, y);
      if (v) from_right(v + k, n, q, x, y);
      return;
    }
    from_left(&at(k, k), end - k, {x, y, z}, q, r);
    from_right(&at(begin, k), below - begin, {x, y, z}, q, r);
    if (v) from_right(v + k, n, {x, y, z}, q, r);
  }

  void from_left(double *row, int64_t count, const Triple &scale, double q, double r) const {
    double *__restrict a = row, *__restrict b = row + stride, *__restrict c = row + 2 * stride;
    const double x = scale.p, y = scale.q, z = scale.r;
    for (int64_t j = 0; j < count; j++) {
      const double sum = a[j] + q * b[j] + r * c[j];
      a[j] -= sum * x;
      b[j] -= sum * y;
      c[j] -= sum * z;
    }
  }
  void from_left(double *row, int64_t count, double q, double x, double y) const {
    double *__restrict a = row, *__restrict b = row + stride;
    for (int64_t j = 0; j < count; j++) {
      const double sum = a[j] + q * b[j];
      a[j] -= sum * x;
      b[j] -= sum * y;
    }
  }
  void from_right(double *row, int64_t count, const Triple &scale, double q, double r) const {
    for (int64_t i = 0; i < count; i++, row += stride) {
      const double sum = scale.p * row[0] + scale.q * row[1] + scale.r * row[2];
      row[0] -= sum;
      row[1] -= sum * q;
      row[2] -= sum * r;
    }
  }
  void from_right(double *row, int64_t count, double q, double x, double y) const {
    for (int64_t i = 0; i < count; i++, row += stride) {
      const double sum = x * row[0] + y * row[1];
      row[0] -= sum;
      row[1] -= sum * q;
    }
  }
};

} // namespace orchard::ORCHARD_ISA
