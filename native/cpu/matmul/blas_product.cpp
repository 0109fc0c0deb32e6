#include "blas_product.h"

#include "../blas.h"
#include "../memory.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>
#include <array>
#include <climits>
#include <memory>
#include <tuple>

namespace orchard {
namespace {

using tuning::matmul::elements_of_copy;

// An operand in the form that a BLAS takes: its address, whether its columns are adjacent (else its rows are), and the
// stride of the other axis.
struct BlasMatrix {
  const char *data;
  int trans;
  int leading;
};

// The sizes from which the BLAS is used by default: the minimum operations of a single product, and of each product in
// a batch. Smaller products of a batch are divided among the dylib's threads, which a BLAS does not do.
struct BlasRange {
  DType dtype;
  double least_operations, least_operations_in_batch;
};
#if defined(__APPLE__)
constexpr std::array<BlasRange, 2> blas_ranges = {
    {{DType::float32, 0, 2.0 * 96 * 96 * 96}, {DType::float64, 0, 2.0 * 96 * 96 * 96}}};
#else
constexpr std::array<BlasRange, 0> blas_ranges;
#endif

bool is_in_table(const BatchedProduct &batch) {
  const MatrixProduct &product = batch.first;
  return std::any_of(blas_ranges.begin(), blas_ranges.end(), [&](const BlasRange &range) {
    const double least = batch.batch.rank > 0 ? range.least_operations_in_batch : range.least_operations;
    return product.dtype == range.dtype && product.operations() >= least;
  });
}

bool fits_int(int64_t value) { return value <= INT_MAX; }

// Returns whether a stride is valid: rows must not overlap, even where the stride is unused because there is only one
// row.
bool spans(int64_t stride, int64_t count, int64_t length) {
  return count <= 1 || (stride >= std::max<int64_t>(length, 1) && fits_int(stride));
}

int leading_stride(int64_t stride, int64_t count, int64_t length) {
  return static_cast<int>(count <= 1 ? std::max<int64_t>(length, 1) : stride);
}

bool has_adjacent_columns(const Matrix &matrix, int64_t rows, int64_t columns) {
  return (matrix.column_stride == 1 || columns <= 1) && spans(matrix.row_stride, rows, columns);
}

// Returns whether a BLAS can compute the product: the dtype is float64 or float32, sizes fit an int, and k is not 0.
bool is_for_blas(const MatrixProduct &product) {
  bool has_dtype = product.dtype == DType::float64 || product.dtype == DType::float32;
  return has_dtype && product.k > 0 && fits_int(product.m) && fits_int(product.n) && fits_int(product.k);
}

template <class T> void copy_matrix(const Matrix &from, const Matrix &to, int64_t rows, int64_t columns, T factor) {
  int64_t grain = std::max<int64_t>(1, elements_of_copy / std::max<int64_t>(columns, 1));
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
      const T *in = reinterpret_cast<const T *>(from.data) + row * from.row_stride;
      T *out = reinterpret_cast<T *>(to.data) + row * to.row_stride;
      for (int64_t c = 0; c < columns; c++) out[c * to.column_stride] = factor * in[c * from.column_stride];
    }
  });
}

// An operand for a batch of products: used in place, or copied to a buffer. The copy is reused if the next product has
// the same operand.
template <class T> class Operand {
public:
  BlasMatrix describe(const Matrix &matrix, int64_t rows, int64_t columns) {
    if (has_adjacent_columns(matrix, rows, columns))
      return {matrix.data, cblas_no_trans, leading_stride(matrix.row_stride, rows, columns)};
    if (has_adjacent_columns(matrix.transposed(), columns, rows))
      return {matrix.data, cblas_trans, leading_stride(matrix.column_stride, columns, rows)};
    if (!copy_) copy_ = std::make_unique<Scratch<T>>(rows * columns);
    char *target = reinterpret_cast<char *>(copy_->data());
    if (copied_ != matrix.data) copy_matrix<T>(matrix, {target, columns, 1}, rows, columns, T(1));
    copied_ = matrix.data;
    return {target, cblas_no_trans, static_cast<int>(columns)};
  }

private:
  std::unique_ptr<Scratch<T>> copy_;
  const char *copied_ = nullptr;
};

template <class T> class BlasProducts {
public:
  BlasProducts(CblasGemm<T> gemm, const BatchedProduct &batch) : gemm_(gemm), batch_(batch) {}

  void run() {
    int64_t count = batch_.count();
    for (int64_t index = 0; index < count; index++) multiply(batch_.at(index));
  }

private:
  void multiply(MatrixProduct product) {
    bool is_column_major = !has_adjacent_columns(product.out, product.m, product.n) &&
                           has_adjacent_columns(product.out.transposed(), product.n, product.m);
    if (is_column_major) product = product.transposed();
    Matrix out = product.out;
    if (!has_adjacent_columns(out, product.m, product.n)) out = own_result(product);
    call(product, out);
    if (out.data != product.out.data) copy_matrix<T>(out, product.out, product.m, product.n, T(1));
  }

  void call(const MatrixProduct &product, const Matrix &out) {
    auto [m, n, k] = std::tuple(product.m, product.n, product.k);
    if (product.has_input()) copy_matrix<T>(product.input, out, m, n, T(product.beta));
    BlasMatrix a = a_.describe(product.a, m, k), b = b_.describe(product.b, k, n);
    gemm_(cblas_row_major, a.trans, b.trans, int(m), int(n), int(k), T(product.alpha),
          reinterpret_cast<const T *>(a.data), a.leading, reinterpret_cast<const T *>(b.data), b.leading,
          T(product.has_input() ? 1 : 0), reinterpret_cast<T *>(out.data), leading_stride(out.row_stride, m, n));
  }

  Matrix own_result(const MatrixProduct &product) {
    if (!result_) result_ = std::make_unique<Scratch<T>>(product.m * product.n);
    return {reinterpret_cast<char *>(result_->data()), product.n, 1};
  }

  CblasGemm<T> gemm_;
  const BatchedProduct &batch_;
  Operand<T> a_, b_;
  std::unique_ptr<Scratch<T>> result_;
};

} // namespace

const Blas *blas_for(const BatchedProduct &batch) {
  if (!is_for_blas(batch.first)) return nullptr;
  const ProductsBy chosen = products_by();
  return chosen == ProductsBy::blas || (chosen == ProductsBy::table && is_in_table(batch)) ? blas() : nullptr;
}

void multiply_by_blas(const Blas &blas, const BatchedProduct &batch) {
  BlasScope scope(blas, BlasThreads::all);
  if (batch.first.dtype == DType::float64) BlasProducts<double>(blas.dgemm, batch).run();
  else BlasProducts<float>(blas.sgemm, batch).run();
}

} // namespace orchard
