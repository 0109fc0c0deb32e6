// QR factorization of a matrix with many more rows than columns. Each block of rows is factored on one thread; then
// their factors R, stacked, are factored again. Source: J. Demmel, L. Grigori, M. Hoemmen and J. Langou,
// "Communication-optimal parallel and sequential QR and LU factorizations", 2012. Blocks depend on the shape only, so
// the result does not depend on the number of threads.
#pragma once

#include "blocked_qr.h"

namespace orchard {

template <class T> class TallQr {
public:
  static bool is_for(int64_t rows, int64_t columns) {
    return columns > 0 && columns <= tuning::qr::tall_columns && rows >= 2 * block_rows(columns);
  }

  TallQr(int64_t rows, int64_t columns)
      : rows_(rows), columns_(columns), blocks_(rows / block_rows(columns)), tau_(blocks_ * columns),
        stack_tau_(columns), stack_(blocks_ * columns * columns),
        stack_work_(BlockedQr<T>::elements(blocks_ * columns, columns)),
        work_(std::min<int64_t>(thread_count(), blocks_),
              BlockedQr<T>::elements(most_rows(), columns) + most_rows() * columns) {}

  // Factors the blocks of A. The vectors are written to `a`, in contiguous rows; `a` may be `from`.
  void factor(const T *from, T *a) {
    for_blocks([&](int64_t at, BlockedQr<T> &qr, T *) {
      const Part<T> part = block(a, columns_, at);
      if (from != a) std::copy_n(from + (part.data - a), part.rows * columns_, part.data);
      qr.factor(part, tau_of(at));
      copy_triangle(part, stack_.data() + at * columns_ * columns_);
    });
    stack_qr().factor(stack(), stack_tau_.data());
  }

  // Copies R, which has `columns` rows and is row-major and contiguous.
  void copy_r(T *r) { copy_triangle(stack(), r); }

  // Multiplies the first columns of Q by a matrix of `columns` rows and `width` columns. The product may replace the
  // vectors if both have the same number of columns.
  void expand(T *a, const T *top, int64_t width, T *out) {
    Scratch<T> tops(blocks_ * columns_ * width);
    std::copy_n(top, columns_ * width, tops.data());
    std::fill_n(tops.data() + columns_ * width, (blocks_ - 1) * columns_ * width, T(0));
    stack_qr().multiply(stack(), stack_tau_.data(), columns_, {tops.data(), blocks_ * columns_, width, width}, false);
    for_blocks([&](int64_t at, BlockedQr<T> &qr, T *scratch) {
      const Part<T> from = block(a, columns_, at), to = block(out, width, at);
      const Part<T> vectors = a == out ? Part<T>{scratch, from.rows, columns_, columns_} : from;
      if (a == out) std::copy_n(from.data, from.rows * columns_, scratch);
      std::copy_n(tops.data() + at * columns_ * width, columns_ * width, to.data);
      std::fill_n(to.data + columns_ * width, (to.rows - columns_) * width, T(0));
      qr.multiply(vectors, tau_of(at), columns_, to, false);
    });
  }

  // Replaces the first `columns` rows of B by the first rows of Qᵀ B. The other rows become undefined.
  void project(T *a, T *b, int64_t width) {
    Scratch<T> tops(blocks_ * columns_ * width);
    for_blocks([&](int64_t at, BlockedQr<T> &qr, T *) {
      const Part<T> part = block(b, width, at);
      qr.multiply(block(a, columns_, at), tau_of(at), columns_, part, true);
      std::copy_n(part.data, columns_ * width, tops.data() + at * columns_ * width);
    });
    stack_qr().multiply(stack(), stack_tau_.data(), columns_, {tops.data(), blocks_ * columns_, width, width}, true);
    std::copy_n(tops.data(), columns_ * width, b);
  }

private:
  static int64_t block_rows(int64_t columns) { return std::max(tuning::qr::least_block_rows, 8 * columns); }

  // The last block includes the remaining rows.
  int64_t most_rows() const { return rows_ - (blocks_ - 1) * block_rows(columns_); }
  Part<T> stack() { return {stack_.data(), blocks_ * columns_, columns_, columns_}; }
  T *tau_of(int64_t at) { return tau_.data() + at * columns_; }
  BlockedQr<T> stack_qr() { return {blocks_ * columns_, columns_, stack_work_.data()}; }

  Part<T> block(T *x, int64_t width, int64_t at) const {
    const int64_t first = at * block_rows(columns_), rows = at + 1 < blocks_ ? block_rows(columns_) : rows_ - first;
    return {x + first * width, rows, width, width};
  }

  // Calls body(block, qr, scratch) for each block. `scratch` has most_rows() * columns elements.
  template <class Body> void for_blocks(Body &&body) {
    const int64_t scratch_elements = most_rows() * columns_;
    parallel_for(blocks_, 1, [&](int64_t begin, int64_t end) {
      typename ScratchParts<T>::Part part(work_);
      BlockedQr<T> qr(most_rows(), columns_, part.data() + scratch_elements);
      for (int64_t at = begin; at < end; at++) body(at, qr, part.data());
    });
  }

  void copy_triangle(const Part<T> &from, T *to) const {
    for (int64_t row = 0; row < columns_; row++) {
      std::fill_n(to + row * columns_, row, T(0));
      std::copy_n(from.data + row * from.stride + row, columns_ - row, to + row * columns_ + row);
    }
  }

  int64_t rows_, columns_, blocks_;
  Scratch<T> tau_, stack_tau_, stack_, stack_work_;
  ScratchParts<T> work_;
};

} // namespace orchard
