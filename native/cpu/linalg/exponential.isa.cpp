#include "exponential.h"

#include "../matmul/simd.h"

#include <algorithm>
#include <cstring>

namespace orchard::ORCHARD_ISA {
namespace {

// Matrices of n rows and columns in rows of `width` elements; the padding is 0. They share a workspace.
template <class T> class Workspace {
public:
  Workspace(T *memory, int64_t n)
      : memory_(memory), n_(n), width_((n + exponential_unit - 1) / exponential_unit * exponential_unit) {}

  T *matrix(int index) const { return memory_ + index * width_ * width_; }
  int64_t elements() const { return n_ * width_; }

  // Copies a dense matrix, divided by 2ˢ in two steps, since 2⁻ˢ may underflow.
  void copy_scaled(const T *from, T *to, int squarings) const {
    const T first = T(std::ldexp(1.0, -(squarings / 2))), second = T(std::ldexp(1.0, -(squarings - squarings / 2)));
    std::memset(to, 0, sizeof(T) * size_t(elements()));
    for (int64_t i = 0; i < n_; i++)
      for (int64_t j = 0; j < n_; j++) to[i * width_ + j] = from[i * n_ + j] * first * second;
  }
  void copy_back(const T *from, T *to) const {
    for (int64_t i = 0; i < n_; i++) std::memcpy(to + i * n_, from + i * width_, sizeof(T) * size_t(n_));
  }

  // c = a b. Rows of the result are computed several at a time, a unit of columns at a time.
  void multiply(const T *a, const T *b, T *c) const {
    int64_t i = 0;
    for (; i + rows_together <= n_; i += rows_together) multiply_rows<rows_together>(a, b, c, i);
    for (; i < n_; i++) multiply_rows<1>(a, b, c, i);
  }

  // to = factors[0] · 1 + Σ factors[k + 1] · matrices[k]
  template <int count> void combine(const double *factors, const T *const (&matrices)[count], T *to) const {
    T scales[count];
    for (int k = 0; k < count; k++) scales[k] = T(factors[k + 1]);
    for (int64_t at = 0; at < elements(); at++) {
      T sum = scales[0] * matrices[0][at];
      for (int k = 1; k < count; k++) sum += scales[k] * matrices[k][at];
      to[at] = sum;
    }
    for (int64_t i = 0; i < n_; i++) to[i * width_ + i] += T(factors[0]);
  }

  void add(const T *a, const T *b, T *to) const {
    for (int64_t at = 0; at < elements(); at++) to[at] = a[at] + b[at];
  }

private:
  // The sums of a block of rows, and a vector of b for each of its vectors of columns, stay in registers.
#if defined(__AVX512F__) || defined(__aarch64__)
  static constexpr int registers_of_sums = 16;
#else
  static constexpr int registers_of_sums = 8;
#endif
  static constexpr int vectors = exponential_unit / lanes<T>;
  static constexpr int rows_together = std::clamp(registers_of_sums / vectors, 1, 8);

  template <int rows> void multiply_rows(const T *a, const T *b, T *c, int64_t first) const {
    for (int64_t j = 0; j < width_; j += exponential_unit) {
      Vector<T> sums[rows][vectors] = {};
      for (int64_t k = 0; k < n_; k++) {
        Vector<T> columns[vectors];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) columns[v] = load_vector(b + k * width_ + j + v * lanes<T>);
#pragma GCC unroll 8
        for (int row = 0; row < rows; row++) {
          const T factor = a[(first + row) * width_ + k];
#pragma GCC unroll 8
          for (int v = 0; v < vectors; v++) sums[row][v] = multiply_add<T>(columns[v], factor, sums[row][v]);
        }
      }
#pragma GCC unroll 8
      for (int row = 0; row < rows; row++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) store_vector<T>(sums[row][v], c + (first + row) * width_ + j + v * lanes<T>);
    }
  }

  T *memory_;
  int64_t n_, width_;
};

template <class T> T one_norm(const T *a, int64_t n) {
  T most = 0;
  for (int64_t j = 0; j < n; j++) {
    T sum = 0;
    for (int64_t i = 0; i < n; i++) sum += std::abs(a[i * n + j]);
    most = sum > most || sum != sum ? sum : most;
  }
  return most;
}

// Evaluates the polynomial of a degree at the workspace's first matrix, and returns the result.
template <class T> T *evaluate(const Workspace<T> &all, int degree, const ExponentialPlan &plan) {
  T *a = all.matrix(0), *a2 = all.matrix(1), *a3 = all.matrix(2), *a6 = all.matrix(3), *result = all.matrix(4);
  T *b[] = {all.matrix(5), all.matrix(6), all.matrix(7), all.matrix(8), all.matrix(9)}, *other = all.matrix(10);
  constexpr double first[] = {1, 1}, second[] = {1, 1, 0.5}, quartic[] = {1.0 / 2, 1.0 / 6, 1.0 / 24};
  if (degree == 1) {
    all.template combine<1>(first, {a}, result);
    return result;
  }
  all.multiply(a, a, a2);
  if (degree == 2) {
    all.template combine<2>(second, {a, a2}, result);
  } else if (degree == 4) {
    all.template combine<2>(quartic, {a, a2}, b[0]);
    all.multiply(a2, b[0], b[1]);
    constexpr double sums[] = {1, 1, 1};
    all.template combine<2>(sums, {a, b[1]}, result);
  } else if (degree == 8) {
    // x1 … x7 and y2; A⁴ = A² (x1 A + x2 A²), A⁸ = (x3 A² + A⁴) (x4 + x5 A + x6 A² + x7 A⁴), 1 + A + y2 A² + A⁸
    const double *c = plan.coefficients8, last = c[6];
    const double x3 = 2.0 / 3;
    const double fourth[] = {0, c[0], c[1]}, left[] = {0, x3, 1}, right[] = {c[2], c[3], c[4], c[5]};
    const double sums[] = {1, 1, last, 1};
    all.template combine<2>(fourth, {a, a2}, b[0]);
    all.multiply(a2, b[0], b[1]);
    all.template combine<2>(left, {a2, b[1]}, b[2]);
    all.template combine<3>(right, {a, a2, b[1]}, b[3]);
    all.multiply(b[2], b[3], b[4]);
    all.template combine<3>(sums, {a, a2, b[4]}, result);
  } else if (degree == 12) {
    // rows of four factors of 1, A, A², A³: b1 + (b2 + a6) a6 with a6 = b3 + b4²
    all.multiply(a2, a, a3);
    for (int row = 0; row < 4; row++) all.template combine<3>(plan.coefficients12 + 4 * row, {a, a2, a3}, b[row]);
    all.multiply(b[3], b[3], other);
    all.add(b[2], other, a6);
    all.add(b[1], a6, other);
    all.multiply(other, a6, b[4]);
    all.add(b[0], b[4], result);
  } else {
    // rows of five factors of 1, A, A², A³, A⁶: b2 + (b3 + a9) a9 with a9 = b1 b5 + b4
    all.multiply(a2, a, a3);
    all.multiply(a3, a3, a6);
    for (int row = 0; row < 5; row++) all.template combine<4>(plan.coefficients18 + 5 * row, {a, a2, a3, a6}, b[row]);
    all.multiply(b[0], b[4], other);
    all.add(other, b[3], a6);
    all.add(b[2], a6, other);
    all.multiply(other, a6, b[0]);
    all.add(b[1], b[0], result);
  }
  return result;
}

template <class T> void exponential(const T *a, T *out, int64_t n, const ExponentialPlan &plan, T *scratch) {
  const double norm = double(one_norm(a, n));
  int at = 0, squarings = 0;
  while (at < exponential_limits - 1 && !(norm <= plan.limits[at])) at++;
  if (norm > plan.limits[at] && norm <= std::numeric_limits<double>::max())
    squarings = std::max(0, int(std::ceil(std::log2(norm / plan.limits[at]))));
  const Workspace<T> all(scratch, n);
  all.copy_scaled(a, all.matrix(0), squarings);
  T *result = evaluate(all, exponential_degrees[at], plan), *other = all.matrix(0);
  for (int step = 0; step < squarings; step++, std::swap(result, other)) all.multiply(result, result, other);
  all.copy_back(result, out);
}

} // namespace

extern const Exponentials exponentials = {{exponential<double>}, {exponential<float>}};

} // namespace orchard::ORCHARD_ISA
