// The function "matmul".
#include "../blas.h"
#include "../isa.h"
#include "../parallel.h"
#include "blas_product.h"
#include "kernel.h"
#include "pairs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <mutex>
#include <optional>

using namespace orchard;

namespace {

// Below this, a call of a BLAS uses one thread, and is up to three times as fast as ours there: a batch of such
// products is divided among all threads instead where they are more.
constexpr double small_operations = 2.0 * 96 * 96 * 96;
constexpr int threads_worth_a_blas = 3;
constexpr double operations_per_task = 1e6;

// Where our own product is at least as fast as OpenBLAS, whose threads besides wait in a loop for 100 ms after a call,
// on processors that the operations after it want. Measured on two cores of a Xeon with AVX-512 (family 6, model 207),
// OpenBLAS 0.3.21 as SkylakeX: a training step of products from 768 x 128 x 128 to 768 x 512 x 128 (forward, gradients
// of input and weights) took 34 ms with our own and 37 ms with OpenBLAS, before our own took a quarter less; 768 x 65 x
// 128 takes 67 and 141 µs, 768 x 32 x 768 131 and 404 µs, 80 x 80 x 80 8.4 and 6.6 µs, 1024 x 1024 x 1024 7.1 and 6.6
// ms. `bun run bench matmul` measures what a further row needs.
struct OwnRange {
  Isa least_isa;
  DType dtype;
  int64_t least_side;
  double least_operations, most_operations;
};
#if defined(__x86_64__)
constexpr OwnRange faster_than_openblas[] = {{Isa::avx512, DType::float32, 32, 1.5e6, 1e9}};
#else
constexpr std::array<OwnRange, 0> faster_than_openblas;
#endif

bool is_better_without(const Blas &library, const MatrixProduct &product) {
  if (library.name != "OpenBLAS") return false;
  int64_t least_side = std::min({product.m, product.n, product.k});
  return std::any_of(std::begin(faster_than_openblas), std::end(faster_than_openblas), [&](const OwnRange &range) {
    return current_isa() >= range.least_isa && product.dtype == range.dtype && least_side >= range.least_side &&
           product.operations() >= range.least_operations && product.operations() <= range.most_operations;
  });
}

using Multiply = void (*)(const MatrixProduct &);

bool is_batch_of_small_products(const BatchedProduct &batch) {
  return batch.batch.rank > 0 && batch.first.operations() < small_operations;
}

const Blas *blas_for(const BatchedProduct &batch) {
  if (batch.first.k == 0 || !is_for_blas(batch.first)) return nullptr;
  bool is_better_divided = is_batch_of_small_products(batch) && thread_count() > threads_worth_a_blas;
  const Blas *library = is_better_divided ? nullptr : blas();
  return library && is_better_without(*library, batch.first) ? nullptr : library;
}

// Bodies must not throw: the first failure is kept, and thrown when all are done.
void multiply_in_parallel(Multiply multiply, const BatchedProduct &batch) {
  std::mutex mutex;
  std::optional<Failure> failure;
  int64_t grain = static_cast<int64_t>(std::ceil(operations_per_task / std::max(batch.first.operations(), 1.0)));
  parallel_for(batch.count(), grain, [&](int64_t begin, int64_t end) {
    try {
      for (int64_t index = begin; index < end; index++) multiply(batch.at(index));
    } catch (const Failure &problem) {
      std::lock_guard lock(mutex);
      failure = problem;
    }
  });
  if (failure) throw *failure;
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

// Turns a row times a matrix into a matrix times a column. True where the kernels for the latter can take it.
bool is_vector_product(BatchedProduct &batch) {
  if (batch.first.m == 1 && batch.first.n != 1) {
    batch.first = batch.first.transposed();
    std::swap(batch.batch.strides[matmul_a], batch.batch.strides[matmul_b]);
  }
  return is_matrix_times_vector(batch.first);
}

void multiply_batch(BatchedProduct &batch) {
  const MatrixProduct &first = batch.first;
  Multiply own = matmul_kernels().multiply[static_cast<int>(first.dtype)];
  if (!own)
    fail(ORCHARD_CPU_UNSUPPORTED,
         std::string("there is no matrix product of ") + dtype_names[static_cast<int>(first.dtype)]);
  check_factors(first);
  if (batch.count() == 0 || first.m == 0 || first.n == 0) return;
  batch.simplify();
  if (is_vector_product(batch)) own = matrix_vector_kernels().multiply[static_cast<int>(first.dtype)];
  else if (Multiply pairs = pair_product(first)) own = pairs;
  else if (const Blas *library = blas_for(batch)) return multiply_by_blas(*library, batch);
  if (is_batch_of_small_products(batch)) multiply_in_parallel(own, batch);
  else multiply_one_by_one(own, batch);
}

// Without an input, or with beta 0, `input` is not read. float64 and float32 go to the BLAS where there is one. float16
// and bfloat16 are summed in float32 and rounded once. Integers wrap, alpha and beta are whole. bool is unsupported. k
// = 0 leaves beta input, or zeros.
void matmul(const MatmulBlock &block, Operands operands) {
  BatchedProduct batch = read_product(block, operands);
  multiply_batch(batch);
}

ORCHARD_FUNCTION("matmul", matmul, MatmulBlock, matmul_operands)

} // namespace

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
