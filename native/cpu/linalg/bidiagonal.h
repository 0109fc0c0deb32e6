// Reduction of a matrix to lower bidiagonal form by reflections: W = G₀ G₁ … B … H₁ H₀, where Hᵢ maps row i to its
// diagonal element, and Gᵢ column i to the element below the diagonal.
//
// Source: G. Golub and C. Van Loan, "Matrix Computations", 2013, section 5.4.8.
#pragma once

#include "../matmul/lane_sums.h"

#include <algorithm>
#include <cmath>

namespace orchard::ORCHARD_ISA {

// Rows of whole vectors. Elements after the last column are 0.
struct Rows {
  double *data;
  int64_t count, stride;

  double *row(int64_t i) const { return data + i * stride; }
};

// A reflection I − τ v vᵀ. v has as many elements as a row: zeros, and 1 at `first`.
struct Reflection {
  double *v;
  double tau;
  int64_t first;

  int64_t first_vector() const { return first / lanes<double> * lanes<double>; }
};

// Sums of squares below this are treated as 0. The matrix is scaled so that its largest element is about 1.
constexpr double no_squares = 0x1p-960;

// Replaces the part of v from `first` on by that of the reflection which maps it to (β, 0, …). Returns β.
inline double reflect(Reflection &reflection, int64_t count) {
  double *v = reflection.v;
  const double head = v[reflection.first];
  v[reflection.first] = 0;
  Vector<double> squares = {};
  for (int64_t j = reflection.first_vector(); j < count; j += lanes<double>) {
    const Vector<double> part = load_vector(v + j);
    squares = multiply_add<double>(part, part, squares);
  }
  const double rest = sum_of_lanes<double>(squares);
  reflection.tau = 0;
  if (!(rest > no_squares)) return head;
  const double beta = -std::copysign(std::sqrt(head * head + rest), head);
  for (int64_t j = reflection.first_vector(); j < count; j += lanes<double>)
    store_vector<double>(load_vector(v + j) / (head - beta), v + j);
  v[reflection.first] = 1;
  reflection.tau = (beta - head) / beta;
  return beta;
}

// The products of `rows` rows from `from` on and v, times τ.
template <int rows>
inline void products_of(const Rows &a, int64_t from, const Reflection &by, double (&products)[lanes<double>]) {
  Vector<double> sums[lanes<double>] = {};
  for (int64_t j = by.first_vector(); j < a.stride; j += lanes<double>) {
    const Vector<double> v = load_vector(by.v + j);
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) sums[i] = multiply_add<double>(v, load_vector(a.row(from + i) + j), sums[i]);
  }
  store_vector<double>(sums_of_lanes<double>(sums) * by.tau, products);
}

// Rows [begin, end) of A become those of A (I − τ v vᵀ).
inline void reflect_rows(const Rows &a, int64_t begin, int64_t end, const Reflection &by) {
  if (by.tau == 0) return;
  constexpr int group = lanes<double>;
  const auto subtract = [&](int64_t i, double product) {
    for (int64_t j = by.first_vector(); j < a.stride; j += lanes<double>)
      store_vector<double>(multiply_add<double>(load_vector(by.v + j), -product, load_vector(a.row(i) + j)),
                           a.row(i) + j);
  };
  double products[group];
  int64_t i = begin;
  for (; i + group <= end; i += group) {
    products_of<group>(a, i, by, products);
    for (int at = 0; at < group; at++) subtract(i + at, products[at]);
  }
  for (; i < end; i++) {
    products_of<1>(a, i, by, products);
    subtract(i, products[0]);
  }
}

// Columns [j, j + vectors · lanes) of A become those of (I − τ u uᵀ) A.
template <int vectors> inline void reflect_columns_at(const Rows &a, int64_t j, const Reflection &by) {
  Vector<double> sums[vectors] = {};
  for (int64_t i = by.first; i < a.count; i++)
#pragma GCC unroll 4
    for (int at = 0; at < vectors; at++)
      sums[at] = multiply_add<double>(load_vector(a.row(i) + j + at * lanes<double>), by.v[i], sums[at]);
#pragma GCC unroll 4
  for (int at = 0; at < vectors; at++) sums[at] = sums[at] * by.tau;
  for (int64_t i = by.first; i < a.count; i++)
#pragma GCC unroll 4
    for (int at = 0; at < vectors; at++) {
      double *to = a.row(i) + j + at * lanes<double>;
      store_vector<double>(multiply_add<double>(sums[at], -by.v[i], load_vector(to)), to);
    }
}

// The columns of A from the vector of column `first` on become those of (I − τ u uᵀ) A.
inline void reflect_columns(const Rows &a, int64_t first, const Reflection &by) {
  if (by.tau == 0) return;
  constexpr int most = 4;
  int64_t j = first / lanes<double> * lanes<double>;
  for (; j + most * lanes<double> <= a.stride; j += most * lanes<double>) reflect_columns_at<most>(a, j, by);
  for (; j < a.stride; j += lanes<double>) reflect_columns_at<1>(a, j, by);
}

// A bidiagonal matrix and its reflections. Row i of `right` has the vector of Hᵢ, row i of `left` that of Gᵢ.
struct Bidiagonal {
  Rows right, left;
  double *diagonal, *below, *right_taus, *left_taus;

  Reflection h(int64_t i) const { return {right.row(i), right_taus[i], i}; }
  Reflection g(int64_t i) const { return {left.row(i), left_taus[i], i + 1}; }
};

// Reduces W, which has at least as many columns as rows. Overwrites it.
inline void bidiagonalize(const Rows &w, const Bidiagonal &to) {
  const int64_t count = w.count;
  for (int64_t i = 0; i < count; i++) {
    Reflection h = to.h(i);
    std::fill_n(h.v, i, 0.0);
    std::copy(w.row(i) + i, w.row(i) + w.stride, h.v + i);
    to.diagonal[i] = reflect(h, w.stride);
    to.right_taus[i] = h.tau;
    reflect_rows(w, i + 1, count, h);
    if (i + 1 == count) break;
    Reflection g = to.g(i);
    std::fill_n(g.v, to.left.stride, 0.0);
    for (int64_t k = i + 1; k < count; k++) g.v[k] = w.row(k)[i];
    to.below[i] = reflect(g, to.left.stride);
    to.left_taus[i] = g.tau;
    reflect_columns(w, i + 1, g);
  }
}

// Replaces `vectors` by the rows of the identity matrix times the reflections from the last one to the first, where
// at(i) is the reflection with index i.
template <class At> inline void accumulate(const Rows &vectors, int64_t reflections, At &&at) {
  std::fill_n(vectors.data, vectors.count * vectors.stride, 0.0);
  for (int64_t i = 0; i < vectors.count; i++) vectors.row(i)[i] = 1;
  for (int64_t i = reflections - 1; i >= 0; i--) {
    const Reflection by = at(i);
    reflect_rows(vectors, by.first, vectors.count, by);
  }
}

} // namespace orchard::ORCHARD_ISA
