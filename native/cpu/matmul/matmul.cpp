// The function "matmul".
#include "../isa.h"
#include "../parallel.h"
#include "all_or_failure.h"
#include "blas_product.h"
#include "grid.h"
#include "kernel.h"
#include "pairs.h"
#include "tuning.h"

#include <algorithm>
#include <cmath>

using namespace orchard;

namespace {

using namespace tuning::matmul;

using Multiply = void (*)(const MatrixProduct &);

// Returns whether threads that each compute whole products of the batch end sooner than threads that compute one
// product after another together. Times are in operations of one thread. `tiles` limits the threads of a product.
bool divides_well(int64_t count, double operations, int64_t tiles) {
  const int64_t threads = threads_at_hand(), rounds = (count + threads - 1) / threads,
                together = std::min(threads_worth(operations, threads), tiles);
  const double fork_join = operations_of_threads * double(together) + operations_of_fork_join;
  return double(rounds) * operations < double(count) * (operations / double(together) + fork_join);
}

// `tile` is the number of rows and columns that one thread computes at least, and `speed` the rate of multiply-adds
// relative to float32.
bool is_batch_for_threads(const BatchedProduct &batch, int64_t tile, double speed) {
  const double operations = batch.first.operations();
  if (batch.batch.rank == 0) return false;
  const int64_t tiles = ((batch.first.m + tile - 1) / tile) * ((batch.first.n + tile - 1) / tile);
  return operations < small_operations ||
         (operations < medium_operations && divides_well(batch.count(), operations / speed, tiles));
}

// Each product is computed by one thread, so results do not depend on the division. A batch of few operations is
// divided among as many threads as one product of these operations; tasks of `operations_of_task` would use fewer.
void multiply_in_parallel(Multiply multiply, const BatchedProduct &batch) {
  const int64_t count = batch.count();
  const double operations = batch.first.operations() + operations_of_call;
  const int64_t threads = threads_worth(operations * double(count), threads_at_hand()),
                most = (count + threads - 1) / threads,
                grain = std::min(most, static_cast<int64_t>(std::ceil(operations_of_task / operations)));
  parallel_for_failing(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; index++) multiply(batch.at(index));
  });
}

void multiply_one_by_one(Multiply multiply, const BatchedProduct &batch) {
  int64_t count = batch.count();
  for (int64_t index = 0; index < count; index++) multiply(batch.at(index));
}

void check_factors(const MatrixProduct &product) {
  bool is_integer = product.dtype >= DType::int64;
  auto is_whole = [](double value) { return value == std::trunc(value) && std::abs(value) < 9.2e18; };
  if (is_integer && !(is_whole(product.alpha) && is_whole(product.beta)))
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected whole numbers as alpha and beta of an integer product");
}

void multiply_dots(const BatchedProduct &batch) {
  const auto dots = matrix_vector_kernels().dots[static_cast<int>(batch.first.dtype)];
  const double operations = batch.first.operations() + operations_of_short_dot;
  parallel_for(batch.count(), static_cast<int64_t>(std::ceil(dot_operations_of_task / operations)),
               [&](int64_t begin, int64_t end) { dots(batch, begin, end); });
}

// Rewrites a row times a matrix as a matrix times a column. Returns whether the matrix-vector kernels can compute the
// product.
bool is_vector_product(BatchedProduct &batch) {
  if (batch.first.m == 1 && batch.first.n != 1) {
    batch.first = batch.first.transposed();
    std::swap(batch.batch.strides[matmul_a], batch.batch.strides[matmul_b]);
  }
  return is_matrix_times_vector(batch.first);
}

void multiply_batch(BatchedProduct &batch) {
  const MatrixProduct &first = batch.first;
  Multiply kernel = matmul_kernels().multiply[static_cast<int>(first.dtype)];
  int64_t tile = rows_of_task;
  double speed = 1;
  if (!kernel)
    fail(ORCHARD_CPU_UNSUPPORTED,
         std::string("there is no matrix product of ") + dtype_names[static_cast<int>(first.dtype)]);
  check_factors(first);
  if (batch.count() == 0 || first.m == 0 || first.n == 0) return;
  batch.simplify();
  if (is_batch_of_dots(batch)) return multiply_dots(batch);
  if (is_vector_product(batch)) kernel = matrix_vector_kernels().multiply[static_cast<int>(first.dtype)];
  else if (Multiply pairs = pair_product(first)) kernel = pairs, tile = rows_of_tiled_task, speed = tiled_speed;
  else if (const Blas *library = blas_for(batch)) return multiply_by_blas(*library, batch);
  if (is_batch_for_threads(batch, tile, speed)) multiply_in_parallel(kernel, batch);
  else multiply_one_by_one(kernel, batch);
}

// Without an input, or with beta 0, `input` is not read. float16 and bfloat16 are summed in float32 and rounded once.
// Integers wrap around, and their alpha and beta are integers. bool is not supported. With k = 0, the result is beta *
// input, or zeros without an input.
void matmul(const MatmulBlock &block, Operands operands) {
  BatchedProduct batch = read_product(block, operands);
  multiply_batch(batch);
}

ORCHARD_FUNCTION("matmul", matmul, MatmulBlock, matmul_operands)

} // namespace

void orchard::multiply_then(const MatmulBlock &block, Operands operands, int64_t m, Epilogue &epilogue) {
  BatchedProduct batch = read_product(block, operands);
  batch.simplify();
  if (batch.batch.rank == 0 && batch.first.m == m) batch.first.epilogue = &epilogue;
  multiply_batch(batch);
}

void orchard::multiply(const MatrixProduct &product) {
  BatchedProduct batch{};
  batch.first = product;
  multiply_batch(batch);
}

void orchard::multiply_here(const MatrixProduct &product) {
  if (product.m == 0 || product.n == 0) return;
  const int dtype = static_cast<int>(product.dtype);
  const MatrixProduct turned = product.m == 1 && product.n != 1 ? product.transposed() : product;
  if (is_matrix_times_vector(turned)) matrix_vector_kernels().multiply[dtype](turned);
  else matmul_kernels().multiply[dtype](product);
}
