// Blocks of reflections H = I - tau v vᵀ, each of which maps a column to a multiple of a unit vector. The product of a
// block's reflections is I - V T Vᵀ with T upper triangular, the compact WY form. Source: R. Schreiber and C. Van Loan,
// "A storage-efficient WY representation for products of Householder transformations", 1989.
#pragma once

#include "matrices.h"
#include "tuning.h"

namespace orchard {

using tuning::qr::narrow_block, tuning::qr::wide_block, tuning::qr::tile_columns;
// The number of elements in two of the widest vectors.
constexpr int64_t copied_columns = 32;

// Part of a row-major matrix.
template <class T> struct Part {
  T *data;
  int64_t rows, columns, stride;

  Part from(int64_t row, int64_t column) const {
    return {data + row * stride + column, rows - row, columns - column, stride};
  }
  Part with_columns(int64_t count) const { return {data, rows, count, stride}; }
};

// V and T of a block. V has `width` columns, and as many rows as the matrix part from which it was computed; unused
// columns are zeros.
template <class T> struct Block {
  T *v, *t;
  int64_t rows, width;

  static int64_t elements(int64_t rows, int64_t width) { return (rows + width) * width; }
  // `memory` has elements(rows, width) elements.
  Block(T *memory, int64_t rows, int64_t width) : v(memory), t(memory + rows * width), rows(rows), width(width) {}
};

template <class T> struct ReflectionKernel {
  // Factors a part of at most `width` columns: replaces it by R and, below the diagonal, the vectors. The size of
  // `work` is `factor_work`.
  void (*factor)(const Part<T> &a, T *tau, T *work);
  // Computes V and T of a factored part. The size of `work` is `pack_work`.
  void (*pack)(const Part<const T> &a, const T *tau, const Block<T> &block, T *work);
  // Replaces C by (I - V T Vᵀ) C, or by (I - V T Vᵀ)ᵀ C. The size of `work` is `apply_work`.
  void (*apply)(const Block<T> &block, const Part<T> &c, bool transpose, T *work);
};

inline int64_t apply_work(int64_t rows) { return copied_columns * (2 * wide_block + rows); }
inline int64_t pack_work(int64_t rows) { return rows * narrow_block + 2 * wide_block * wide_block; }
inline int64_t factor_work(int64_t rows) {
  return Block<float>::elements(rows, narrow_block) + std::max(apply_work(rows), pack_work(rows));
}

using ReflectionKernels = OfReals<ReflectionKernel>;

} // namespace orchard

ORCHARD_ISA_TABLE(ReflectionKernels, reflection_kernels)
