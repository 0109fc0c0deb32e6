#include "product.h"

#include <string>

namespace orchard {
namespace {

int64_t checked_size(const char *name, int64_t size) {
  if (size < 0)
    fail(ORCHARD_CPU_INVALID_ARGUMENT,
         std::string("expected ") + name + " to be at least 0, got " + std::to_string(size));
  return size;
}

} // namespace

BatchedProduct read_product(const MatmulBlock &block, Operands operands) {
  BatchedProduct product{};
  MatrixProduct &first = product.first;
  first.dtype = block.dtype;
  first.m = checked_size("m", block.m);
  first.n = checked_size("n", block.n);
  first.k = checked_size("k", block.k);
  first.alpha = block.alpha;
  first.beta = block.has_input ? double(block.beta) : 0;
  auto matrix = [&](MatmulOperand operand) -> Matrix {
    char *data = element(operands[operand], first.dtype, block.offsets[operand]);
    return {data, block.row_strides[operand], block.column_strides[operand]};
  };
  first.a = matrix(matmul_a);
  first.b = matrix(matmul_b);
  first.out = matrix(matmul_out);
  if (block.has_input) first.input = matrix(matmul_input);
  product.batch = block.batch;
  for (int axis = 0; axis < product.batch.rank; axis++)
    checked_size("each size of the batch", product.batch.shape[axis]);
  return product;
}

MatrixProduct BatchedProduct::at(int64_t index) const {
  MatrixProduct product = first;
  int64_t size = dtype_sizes[static_cast<int>(first.dtype)], offsets[matmul_operands];
  batch.find_offsets(index, offsets);
  product.a.data += offsets[matmul_a] * size;
  product.b.data += offsets[matmul_b] * size;
  product.out.data += offsets[matmul_out] * size;
  if (product.has_input()) product.input.data += offsets[matmul_input] * size;
  return product;
}

void BatchedProduct::simplify() {
  auto &[rank, shape, strides] = batch;
  int kept = 0;
  for (int axis = 0; axis < rank; axis++) {
    if (shape[axis] == 1) continue;
    shape[kept] = shape[axis];
    for (auto &own : strides) own[kept] = own[axis];
    kept++;
  }
  rank = kept;
  auto continues_rows = [&](const Matrix &matrix, int64_t stride) { return stride == first.m * matrix.row_stride; };
  while (batch.rank > 0) {
    int last = batch.rank - 1;
    auto stride = [&](MatmulOperand operand) { return batch.strides[operand][last]; };
    bool is_row_axis = stride(matmul_b) == 0 && continues_rows(first.a, stride(matmul_a)) &&
                       continues_rows(first.out, stride(matmul_out)) &&
                       (!first.has_input() || continues_rows(first.input, stride(matmul_input)));
    if (!is_row_axis) break;
    first.m *= batch.shape[last];
    batch.rank = last;
  }
}

} // namespace orchard
