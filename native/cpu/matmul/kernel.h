// The dylib's own matrix product, for every dtype but bool and any strides.
#pragma once

#include "product.h"

namespace orchard {

// By dtype, null for bool. They run on all threads, and throw Failure where there is no memory.
struct MatmulKernels {
  void (*multiply[dtype_count])(const MatrixProduct &product);
};

// A matrix times a column (n = 1), whose rows or whose columns are adjacent: every element is read once, in order.
struct MatrixVectorKernels {
  void (*multiply[dtype_count])(const MatrixProduct &product);
};

inline bool is_matrix_times_vector(const MatrixProduct &product) {
  return product.n == 1 && product.k > 0 && (product.a.column_stride == 1 || product.a.row_stride == 1);
}

// Whether a product of few rows is one of dot products: numbers are adjacent along k in both operands. Where k is
// short, sums of a vector's lanes take as long as the products.
inline bool is_for_dots(const MatrixProduct &product) {
  return product.a.column_stride == 1 && product.b.row_stride == 1 && product.k >= 128 &&
         product.k * product.n >= 1 << 15;
}

} // namespace orchard

ORCHARD_ISA_TABLE(MatmulKernels, matmul_kernels)
ORCHARD_ISA_TABLE(MatrixVectorKernels, matrix_vector_kernels)
