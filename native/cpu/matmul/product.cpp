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
  product.batch = block.batch;
  // If an operand is not read or has no elements, its strides are set to 0: the block may contain any numbers.
  auto matrix = [&](MatmulOperand operand, int64_t rows, int64_t columns) -> Matrix {
    const int64_t row = block.row_strides[operand], column = block.column_strides[operand],
                  offset = block.offsets[operand];
    const Extent extent = product.batch.extent(operand).along(rows, row).along(columns, column);
    if (operand == matmul_out) return {operands.result(operand, first.dtype, offset, extent), row, column};
    char *data = const_cast<char *>(operands.input(operand, first.dtype, offset, extent));
    if (!extent.is_empty()) return {data, row, column};
    product.batch.clear_strides(operand);
    return {data, 0, 0};
  };
  first.a = matrix(matmul_a, first.m, first.k);
  first.b = matrix(matmul_b, first.k, first.n);
  first.out = matrix(matmul_out, first.m, first.n);
  if (first.has_input()) first.input = matrix(matmul_input, first.m, first.n);
  else product.batch.clear_strides(matmul_input);
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
    for (auto &operand_strides : strides) operand_strides[kept] = operand_strides[axis];
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
