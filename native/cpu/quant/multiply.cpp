#include "multiply.h"

#include "../matmul/product.h"
#include "../memory.h"
#include "../parallel.h"
#include "fast.h"

#include <algorithm>

using namespace orchard;

namespace {

// Products that a task is worth.
constexpr int64_t task_products = 1 << 17;

// From so many rows of x on, weights are unpacked to memory, some rows at a time, for the product of float32.
constexpr int64_t many_rows = 16;
constexpr int64_t unpacked_floats = 1 << 21;

struct Product {
  const Weights &weights;
  const float *x;
  int64_t count;
  float *out;

  // x Wᵀ, or x W, a block of rows of weights after the other: those of x W are added up.
  void unpacked(bool is_transposed) const {
    const int64_t columns = weights.columns, rows = weights.rows;
    const int64_t block = std::min(rows, std::max<int64_t>(64, unpacked_floats / columns / 16 * 16));
    Scratch<float> values(scratch_product({block, columns}));
    for (int64_t first = 0; first < rows; first += block) {
      const int64_t own = std::min(block, rows - first);
      parallel_for(own, std::max<int64_t>(1, (1 << 15) / columns), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; row++)
          quant_kernels().unpack(weights, first + row, 0, columns, values.data() + row * columns);
      });
      multiply(is_transposed ? part_of_transposed(first, own, values.data()) : part(first, own, values.data()));
    }
  }

  // out[:, first …] = x valuesᵀ
  MatrixProduct part(int64_t first, int64_t own, float *values) const {
    const int64_t columns = weights.columns;
    const Matrix left = {address(x), columns, 1}, right = {address(values), 1, columns};
    return {DType::float32, count, own, columns, 1, 0, left, right, {address(out + first), weights.rows, 1}, {}};
  }

  // out += x[:, first …] values
  MatrixProduct part_of_transposed(int64_t first, int64_t own, float *values) const {
    const int64_t columns = weights.columns;
    const Matrix left = {address(x + first), weights.rows, 1}, right = {address(values), columns, 1};
    const Matrix sums = {address(out), columns, 1};
    return {DType::float32, count, columns, own, 1, first > 0 ? 1.0 : 0.0, left, right, sums, sums};
  }

  static char *address(const float *values) { return reinterpret_cast<char *>(const_cast<float *>(values)); }

  // In tasks of whole tiles of rows.
  template <class Body> void for_rows(Body body) const {
    const int64_t cost = std::max<int64_t>(1, count * weights.columns);
    parallel_for(weights.rows, std::max<int64_t>(8, task_products / cost / 8 * 8), body);
  }

  void forward() const {
    for_rows([&](int64_t begin, int64_t end) { quant_kernels().multiply(weights, x, count, begin, end, out); });
  }

  // With x in 8 bits: as bytes, or as the floats that they stand for.
  void fast() const {
    const FastKernels &kernels = fast_kernels();
    const int64_t columns = weights.columns, grain = std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(columns, 1));
    if (count >= many_rows || !kernels.multiply) {
      Scratch<float> values(scratch_product({count, columns}));
      parallel_for(count, grain, [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; at++) kernels.round(x + at * columns, columns, values.data() + at * columns);
      });
      return Product{weights, values.data(), count, out}.exact();
    }
    const int64_t pairs = pairs_of_parts(columns);
    Scratch<int8_t> levels(scratch_product({count, pairs, 64}));
    Scratch<float> numbers(scratch_product({count, pairs, 6}));
    const int64_t parts = count * pairs * 2;
    float *scales = numbers.data();
    const ByteRows rows = {pairs, levels.data(), scales, scales + parts, scales + 2 * parts};
    parallel_for(count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at++) kernels.pack(x + at * columns, columns, rows.row(at));
    });
    for_rows([&](int64_t begin, int64_t end) { kernels.multiply(weights, rows, count, begin, end, out); });
  }

  void exact() const {
    if (count >= many_rows && weights.columns > 0) unpacked(false);
    else forward();
  }

  void transposed() const {
    const int64_t tasks = (weights.columns + transposed_columns - 1) / transposed_columns;
    parallel_for(tasks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; task++) {
        const int64_t first = task * transposed_columns;
        quant_kernels().multiply_transposed(weights, x, count, first,
                                            std::min(first + transposed_columns, weights.columns), out);
      }
    });
  }
};

// x of any strides, in float32 and dense.
void widen_strided(const char *x, DType dtype, int64_t row_stride, int64_t column_stride, int64_t rows, int64_t columns,
                   float *out) {
  const QuantKernels &kernels = quant_kernels();
  const int64_t stretch = column_stride == 1 ? columns : 1; // adjacent elements
  for (int64_t row = 0; row < rows; row++)
    for (int64_t column = 0; column < columns; column += stretch)
      kernels.widen(element(x, dtype, row * row_stride + column * column_stride), dtype, out + row * columns + column,
                    stretch);
}

// out[i, n] += bias[n]
void add_bias(float *out, int64_t count, int64_t width, const float *bias) {
  parallel_for(count, std::max<int64_t>(1, (1 << 15) / width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++)
      for (int64_t column = 0; column < width; column++) out[row * width + column] += bias[column];
  });
}

// out [count, rows] = x Wᵀ of x [count, columns], or [count, columns] = x W of x [count, rows]. Sums are in float32, in
// an order that depends on the sizes only, and rounded to the dtype of x before and after a bias is added.
void quantized_matmul(const QuantizedMatmulBlock &block, Operands operands) {
  const Weights weights = weights_of(block, operands, 0);
  const DType dtype = block.dtype;
  const int64_t count = block.count;
  const bool is_transposed = block.is_transposed;
  check_narrow_float(dtype);
  const int64_t width = is_transposed ? weights.rows : weights.columns;
  const int64_t out_width = is_transposed ? weights.columns : weights.rows;
  const int64_t row_stride = block.x_strides[0], column_stride = block.x_strides[1];
  const Extent x_extent = Extent().along(count, row_stride).along(width, column_stride);
  const Extent out_extent = Extent(out_width).along(count, out_width);
  const char *x = operands.input(3, dtype, block.x_offset, x_extent);
  const char *bias = block.has_bias ? operands.input(4, dtype, block.bias_offset, Extent(out_width)) : nullptr;
  char *out = operands.result(5, dtype, 0, out_extent);
  if (out_extent.is_empty()) return;
  const bool is_wide = dtype == DType::float32;
  const bool is_dense = (column_stride == 1 || width <= 1) && (row_stride == width || count <= 1);
  const bool is_read_here = is_wide && is_dense;
  Scratch<float> wide_x(is_read_here ? 0 : x_extent.count()), wide_out(is_wide ? 0 : out_extent.count());
  const QuantKernels &kernels = quant_kernels();
  if (is_dense && !is_wide) kernels.widen(x, dtype, wide_x.data(), x_extent.count());
  if (!is_dense) widen_strided(x, dtype, row_stride, column_stride, count, width, wide_x.data());
  const Product product = {weights, is_read_here ? reinterpret_cast<const float *>(x) : wide_x.data(), count,
                           is_wide ? reinterpret_cast<float *>(out) : wide_out.data()};
  if (block.is_fast && !is_transposed && has_levels(weights)) product.fast();
  else if (!is_transposed) product.exact();
  else if (count >= many_rows && width > 0) product.unpacked(true);
  else product.transposed();
  if (!is_wide) kernels.narrow(wide_out.data(), dtype, out, out_extent.count());
  if (!bias) return;
  if (is_wide) return add_bias(product.out, count, out_width, reinterpret_cast<const float *>(bias));
  Scratch<float> wide_bias(out_width);
  kernels.widen(bias, dtype, wide_bias.data(), out_width);
  kernels.widen(out, dtype, wide_out.data(), out_extent.count());
  add_bias(wide_out.data(), count, out_width, wide_bias.data());
  kernels.narrow(wide_out.data(), dtype, out, out_extent.count());
}

ORCHARD_FUNCTION("quantizedMatmul", quantized_matmul, QuantizedMatmulBlock, 6)

} // namespace
