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
};

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
