// The Schur form of a real matrix, by the QR algorithm with double shifts. Source: B. S. Garbow et al., EISPACK's hqr2,
// 1976, after J. G. F. Francis, "The QR transformation", 1961.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace orchard {

// Replaces the Hessenberg matrix `h` of n rows by its Schur form, multiplies `v` by the same transformations, and
// stores the eigenvalues. Blocks of 2 x 2 remain for pairs of conjugates. The one with a positive imaginary part is
// first.
struct RealSchur {
  double *h, *v, *re, *im;
  int64_t n;

  RealSchur(double *h, double *v, double *re, double *im, int64_t n) : h(h), v(v), re(re), im(im), n(n) {}

  // Returns whether the iteration converged.
  bool run() {
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = std::max<int64_t>(i - 1, 0); j < n; j++) norm_ += std::abs(h[i * n + j]);
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

  double &at(int64_t i, int64_t j) { return h[i * n + j]; }

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
    for (int64_t j = k; j < n; j++) rotate(at(k, j), at(last, j));
    for (int64_t i = 0; i <= last; i++) rotate(at(i, k), at(i, last));
    for (int64_t i = 0; i < n; i++) rotate(v[i * n + k], v[i * n + last]);
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
      reflect(k, last, is_last, {p, q, r}, length);
    }
  }

  struct Triple {
    double p, q, r;
  };

  // Applies a reflection of three rows, or of two at the end, from both sides.
  void reflect(int64_t k, int64_t last, bool is_last, const Triple &vector, double length) {
    const double p = vector.p + length, x = p / length, y = vector.q / length, z = vector.r / length;
    const double q = vector.q / p, r = vector.r / p;
    for (int64_t j = k; j < n; j++) {
      const double sum = at(k, j) + q * at(k + 1, j) + (is_last ? 0 : r * at(k + 2, j));
      at(k, j) -= sum * x;
      at(k + 1, j) -= sum * y;
      if (!is_last) at(k + 2, j) -= sum * z;
    }
    const auto from_right = [&](double *row) {
      const double sum = x * row[k] + y * row[k + 1] + (is_last ? 0 : z * row[k + 2]);
      row[k] -= sum;
      row[k + 1] -= sum * q;
      if (!is_last) row[k + 2] -= sum * r;
    };
    for (int64_t i = 0; i <= std::min(last, k + 3); i++) from_right(h + i * n);
    for (int64_t i = 0; i < n; i++) from_right(v + i * n);
  }
};

} // namespace orchard
