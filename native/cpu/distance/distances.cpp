// The functions "cdist" and "cdistGradient".
#include "../isa.h"

#include "distances.h"

#include <cmath>

using namespace orchard;

namespace {

int kernel_of(const char *name, DType dtype) {
  if (dtype != DType::float64 && dtype != DType::float32)
    fail(ORCHARD_CPU_UNSUPPORTED, std::string("there is no ") + name + " of " + dtype_names[static_cast<int>(dtype)]);
  return static_cast<int>(dtype);
}

DistanceNorm norm_of(double p) {
  if (p == 1) return DistanceNorm::sum;
  if (p == 2) return DistanceNorm::euclidean;
  if (std::isinf(p) && p > 0) return DistanceNorm::largest;
  fail(ORCHARD_CPU_UNSUPPORTED, "there are no distances of order " + std::to_string(p));
}

void check_sizes(std::initializer_list<int64_t> sizes) {
  for (const int64_t size : sizes)
    if (size < 0) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected sizes of at least 0, got " + std::to_string(size));
}

// Returns a matrix of a block's operand; the last operand is the result.
template <class Block>
Matrix matrix_of(const Block &block, const Operands &operands, int index, int64_t rows, int64_t columns,
                 bool is_result) {
  const int64_t row = block.row_strides[index], column = block.column_strides[index];
  Extent extent;
  extent.along(block.batch, block.batch_strides[index]).along(rows, row).along(columns, column);
  const DType dtype = block.dtype;
  char *data = is_result ? operands.result(index, dtype, block.offsets[index], extent)
                         : const_cast<char *>(operands.input(index, dtype, block.offsets[index], extent));
  return {data, row, column};
}

void cdist(const CdistBlock &block, Operands operands) {
  const int kernel = kernel_of("cdist", block.dtype);
  const int64_t batch = block.batch, m = block.m, n = block.n, k = block.k;
  check_sizes({batch, m, n, k});
  Distances distances{norm_of(block.p),
                      batch,
                      m,
                      n,
                      k,
                      matrix_of(block, operands, 0, m, k, false),
                      matrix_of(block, operands, 1, n, k, false),
                      {},
                      block.batch_strides[0],
                      block.batch_strides[1],
                      block.batch_strides[2],
                      block.is_triangle};
  if (!distances.is_triangle) distances.out = matrix_of(block, operands, 2, m, n, true);
  else {
    if (batch != 1 || m != n) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected the pairs of one set of points");
    const int64_t pairs = m == 0 ? 0 : scratch_product({m, m - 1}) / 2;
    distances.out = {operands.result(2, block.dtype, block.offsets[2], Extent(pairs)), 0, 1};
  }
  if (batch > 0 && m > 0 && n > 0) distance_kernels().compute[kernel](distances);
}

void cdist_gradient(const CdistGradientBlock &block, Operands operands) {
  const int kernel = kernel_of("cdistGradient", block.dtype);
  const int64_t batch = block.batch, m = block.m, n = block.n, k = block.k;
  check_sizes({batch, m, n, k});
  for (const int index : {1, 2, 3})
    if (k > 1 && block.column_strides[index] != 1)
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected points with adjacent coordinates");
  const PulledPoints points{batch,
                            m,
                            n,
                            k,
                            matrix_of(block, operands, 0, m, n, false),
                            matrix_of(block, operands, 1, m, k, false),
                            matrix_of(block, operands, 2, n, k, false),
                            matrix_of(block, operands, 3, m, k, true),
                            block.batch_strides[0],
                            block.batch_strides[1],
                            block.batch_strides[2],
                            block.batch_strides[3]};
  if (batch > 0 && m > 0 && k > 0) distance_kernels().pull[kernel](points);
}

ORCHARD_FUNCTION("cdist", cdist, CdistBlock, 3)
ORCHARD_FUNCTION("cdistGradient", cdist_gradient, CdistGradientBlock, 4)

} // namespace
