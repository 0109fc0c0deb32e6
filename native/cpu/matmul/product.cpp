#include "product.h"

namespace orchard {
namespace {

void read_matrix(BlockReader &reader, DType dtype, int rank, const void *base, Matrix &matrix, int64_t *batch_strides) {
  matrix.data = element(const_cast<void *>(base), dtype, reader.whole());
  matrix.row_stride = reader.whole();
  matrix.column_stride = reader.whole();
  for (int axis = 0; axis < rank; axis++) batch_strides[axis] = reader.whole();
}

int64_t read_size(BlockReader &reader, const char *what) {
  int64_t size = reader.whole();
  if (size < 0) fail(ORCHARD_CPU_INVALID_ARGUMENT, std::string("matmul's ") + what + " is " + std::to_string(size));
  return size;
}

} // namespace

BatchedProduct read_product(const double *block, const void *a, const void *b, const void *input, void *out) {
  BlockReader reader(block);
  BatchedProduct batch{};
  MatrixProduct &product = batch.first;
  DType dtype = product.dtype = reader.dtype();
  product.m = read_size(reader, "m");
  product.n = read_size(reader, "n");
  product.k = read_size(reader, "k");
  bool has_input = reader.whole() != 0;
  product.alpha = reader.real();
  product.beta = reader.real();
  if (!has_input) product.beta = 0;
  batch.rank = static_cast<int>(reader.whole());
  if (batch.rank < 0 || batch.rank > max_batch_rank)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "matmul's batch has rank " + std::to_string(batch.rank) + ", 0 to 6 are possible");
  for (int axis = 0; axis < batch.rank; axis++) batch.shape[axis] = read_size(reader, "batch");
  read_matrix(reader, dtype, batch.rank, a, product.a, batch.a);
  read_matrix(reader, dtype, batch.rank, b, product.b, batch.b);
  read_matrix(reader, dtype, batch.rank, out, product.out, batch.out);
  if (has_input) read_matrix(reader, dtype, batch.rank, input, product.input, batch.input);
  return batch;
}

int64_t BatchedProduct::count() const {
  int64_t count = 1;
  for (int axis = 0; axis < rank; axis++) count *= shape[axis];
  return count;
}

MatrixProduct BatchedProduct::at(int64_t index) const {
  MatrixProduct product = first;
  int64_t size = dtype_sizes[static_cast<int>(first.dtype)];
  for (int axis = rank - 1; axis >= 0; axis--) {
    int64_t place = index % shape[axis] * size;
    index /= shape[axis];
    product.a.data += place * a[axis];
    product.b.data += place * b[axis];
    product.out.data += place * out[axis];
    if (product.has_input()) product.input.data += place * input[axis];
  }
  return product;
}

void BatchedProduct::simplify() {
  int kept = 0;
  for (int axis = 0; axis < rank; axis++) {
    if (shape[axis] == 1) continue;
    shape[kept] = shape[axis];
    a[kept] = a[axis], b[kept] = b[axis], out[kept] = out[axis], input[kept] = input[axis];
    kept++;
  }
  rank = kept;
  auto continues_rows = [this](const Matrix &matrix, int64_t stride) { return stride == first.m * matrix.row_stride; };
  while (rank > 0) {
    int last = rank - 1;
    bool is_row_axis = b[last] == 0 && continues_rows(first.a, a[last]) && continues_rows(first.out, out[last]) &&
                       (!first.has_input() || continues_rows(first.input, input[last]));
    if (!is_row_axis) break;
    first.m *= shape[last];
    rank = last;
  }
}

} // namespace orchard
