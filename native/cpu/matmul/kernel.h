// The dylib's matrix products, for every dtype except bool and any strides.
#pragma once

#include "product.h"
#include "tuning.h"

namespace orchard {

// Indexed by dtype, null for bool. The kernels run on all threads, and throw Failure if memory can't be allocated.
struct MatmulKernels {
  void (*multiply[dtype_count])(const MatrixProduct &product);
};

// Kernels for a matrix times a vector (n = 1), with adjacent rows or adjacent columns: every element is read once, in
// order.
struct MatrixVectorKernels {
  void (*multiply[dtype_count])(const MatrixProduct &product);
  // Computes the dot products of a batch with the indices from `begin` to `end`; see `is_batch_of_dots`. float64 and
  // float32 only.
  void (*dots[2])(const BatchedProduct &batch, int64_t begin, int64_t end);
};

// Returns whether a batch is a column of short dot products of adjacent numbers.
inline bool is_batch_of_dots(const BatchedProduct &batch) {
  const MatrixProduct &first = batch.first;
  return batch.batch.rank == 1 && first.dtype <= DType::float32 && first.m == 1 && first.n == 1 && first.k > 0 &&
         first.k <= tuning::matmul::vector_chunk && first.a.column_stride == 1 && first.b.row_stride == 1 &&
         first.alpha == 1 && !first.has_input() && !first.epilogue;
}

inline bool is_matrix_times_vector(const MatrixProduct &product) {
  return product.n == 1 && product.k > 0 && (product.a.column_stride == 1 || product.a.row_stride == 1);
}

// Returns whether to compute a product with few rows as dot products: both operands must be adjacent along k. For small
// k, summing the lanes of vectors would take as long as the products.
inline bool is_for_dots(const MatrixProduct &product) {
  return product.a.column_stride == 1 && product.b.row_stride == 1 &&
         product.k >= tuning::matmul::least_depth_of_dots &&
         product.k * product.n >= tuning::matmul::least_numbers_of_dots;
}

} // namespace orchard

ORCHARD_ISA_TABLE(MatmulKernels, matmul_kernels)
ORCHARD_ISA_TABLE(MatrixVectorKernels, matrix_vector_kernels)
