// A matrix product, or a batch of them, as described by a call.
#pragma once

// out = alpha a b + beta input for each matrix of a batch: a is m x k, b is k x n, out and input are m x n. Strides and
// offsets are in elements; stride 0 broadcasts an operand. out must not overlap itself, a or b; it may be the same
// memory as input.
#include "../../.build/generated/matmul_block.h"

#include "../functions.h"
#include "../nest.h"
#include "epilogue.h"

namespace orchard {

// Indices of the operands in the arrays of a product.
enum MatmulOperand : int { matmul_a, matmul_b, matmul_input, matmul_out, matmul_operands };
static_assert(std::extent_v<decltype(MatmulBlock::offsets)> == matmul_operands);

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
  Epilogue *epilogue = nullptr; // optional

  bool has_input() const { return beta != 0; }
  double operations() const { return 2.0 * double(m) * double(n) * double(k); }
  // Returns the same product, written as outᵀ = bᵀ aᵀ, without the epilogue.
  MatrixProduct transposed() const {
    return {dtype,
            n,
            m,
            k,
            alpha,
            beta,
            b.transposed(),
            a.transposed(),
            out.transposed(),
            input.transposed(),
            /*epilogue=*/nullptr};
  }
};

// A product for every index of a batch; the operands advance by their batch strides.
struct BatchedProduct {
  MatrixProduct first;
  Nest<matmul_operands> batch;

  int64_t count() const { return batch.count(); }
  // Returns the product at a row-major index of the batch.
  MatrixProduct at(int64_t index) const;
  // Drops batch axes of length 1, and merges a batch axis into the rows if b does not vary along it and the rows of the
  // other operands continue along it.
  void simplify();
};

BatchedProduct read_product(const MatmulBlock &block, Operands operands);

// Computes a call of "matmul". If its result is not one matrix of `m` rows, the epilogue is not taken.
void multiply_then(const MatmulBlock &block, Operands operands, int64_t m, Epilogue &epilogue);

// A single floating-point product, for use by other operations. `multiply` uses the fastest method, on all threads.
// `multiply_here` is for the body of a parallel_for: it uses the calling thread and never a BLAS. Both throw Failure if
// memory can't be allocated.
void multiply(const MatrixProduct &product);
void multiply_here(const MatrixProduct &product);

} // namespace orchard
