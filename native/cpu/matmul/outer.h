// Products of a column and a row, k = 1. They are limited by memory bandwidth, so the result is written row by row.
#pragma once

#include "../parallel.h"
#include "finish.h"
#include "small_scratch.h"
#include "some_lanes.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {

template <class S> class OuterProduct {
  using T = Accumulator<S>;

public:
  explicit OuterProduct(const MatrixProduct &product) : p_(product), is_plain_(is_plain<S>(product)) {}

  static bool supports(const MatrixProduct &p) { return p.k == 1 && p.out.column_stride == 1 && !p.epilogue; }

  void run() const {
    const bool is_in_place = std::is_same_v<S, T> && p_.b.column_stride == 1;
    SmallScratch<T> copy(is_in_place ? 0 : p_.n);
    const T *b = reinterpret_cast<const T *>(p_.b.data);
    if (!is_in_place) {
      load_row<T>(element_of<S>(p_.b, 0, 0), p_.b.column_stride, copy.data(), p_.n);
      b = copy.data();
    }
    const int64_t rows = std::max<int64_t>(1, tuning::matmul::numbers_of_outer / p_.n);
    parallel_for(p_.m, rows, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        T factor;
        load_row<T>(element_of<S>(p_.a, i, 0), &factor, 1);
        if (is_plain_) plain_row(i, factor, b);
        else any_row(i, factor, b);
      }
    });
  }

private:
  void plain_row(int64_t i, T factor, const T *b) const {
    T *out = const_cast<T *>(element_of<T>(p_.out, i, 0));
    const T *input = p_.has_input() ? element_of<T>(p_.input, i, 0) : nullptr;
    int64_t j = 0;
    for (; j + lanes<T> <= p_.n; j += lanes<T>) {
      const Vector<T> sum = input ? load_vector(input + j) : Vector<T>{};
      store_vector<T>(multiply_add<T>(load_vector(b + j), factor, sum), out + j);
    }
    if (j == p_.n) return;
    const SomeLanes<T> rest(p_.n - j);
    rest.store(multiply_add<T>(rest.load(b + j), factor, input ? rest.load(input + j) : Vector<T>{}), out + j);
  }

  void any_row(int64_t i, T factor, const T *b) const {
    constexpr int64_t chunk = 256;
    T sums[chunk];
    for (int64_t start = 0; start < p_.n; start += chunk) {
      const int64_t count = std::min(chunk, p_.n - start);
      for (int64_t c = 0; c < count; c++) sums[c] = factor * b[start + c] + T(0);
      finish_row<S>(p_, i, start, count, sums);
    }
  }

  const MatrixProduct &p_;
  const bool is_plain_;
};

// Computes the product if it is one of a column and a row. Returns whether it was.
template <class S> bool multiply_if_outer(const MatrixProduct &product) {
  const bool is_turned = product.out.column_stride != 1 && product.out.row_stride == 1;
  const MatrixProduct shown = is_turned ? product.transposed() : product;
  if (!OuterProduct<S>::supports(shown)) return false;
  OuterProduct<S>(shown).run();
  return true;
}

} // namespace orchard::ORCHARD_ISA
