// A matrix product as the interface describes it, and one matrix of its batch.
#pragma once

#include "../block.h"
#include "../dtypes.h"

#include <utility>

namespace orchard {

constexpr int max_batch_rank = 6;

// A matrix in memory: the address of element (0, 0), and strides in elements.
struct Matrix {
  char *data = nullptr;
  int64_t row_stride = 0, column_stride = 0;

  Matrix transposed() const { return {data, column_stride, row_stride}; }
};

// out (m x n) = alpha a (m x k) b (k x n) + beta input (m x n); without an input, beta is 0.
struct MatrixProduct {
  DType dtype;
  int64_t m, n, k;
  double alpha, beta;
  Matrix a, b, out, input;

  bool has_input() const { return beta != 0; }
  double operations() const { return 2.0 * double(m) * double(n) * double(k); }
  // The same numbers, as outᵀ = bᵀ aᵀ.
  MatrixProduct transposed() const {
    return {dtype, n, m, k, alpha, beta, b.transposed(), a.transposed(), out.transposed(), input.transposed()};
  }
};

// The same for every index of a batch: each operand moves by its own stride along each of `rank` axes.
struct BatchedProduct {
  MatrixProduct first;
  int rank;
  int64_t shape[max_batch_rank];
  int64_t a[max_batch_rank], b[max_batch_rank], out[max_batch_rank], input[max_batch_rank];

  int64_t count() const;
  // The product at a row-major index of the batch.
  MatrixProduct at(int64_t index) const;
  // Drops axes of length 1, and lets an axis along which b stays and the rows of the others go on become rows.
  void simplify();
};

// Reads the block of orchard_cpu_matmul.
BatchedProduct read_product(const double *block, const void *a, const void *b, const void *input, void *out);


} // namespace orchard
