#include "multiply.h"

#include "../memory.h"
#include "../parallel.h"

#include <algorithm>

using namespace orchard;

namespace {

// Products that a task is worth.
constexpr int64_t task_products = 1 << 17;

struct Product {
  const Weights &weights;
  const float *x;
  int64_t count;
  float *out;

  // In tasks of whole tiles of rows.
  void forward() const {
    const int64_t cost = std::max<int64_t>(1, count * weights.columns);
    const int64_t grain = std::max<int64_t>(8, task_products / cost / 8 * 8);
    parallel_for(weights.rows, grain,
                 [&](int64_t begin, int64_t end) { quant_kernels().multiply(weights, x, count, begin, end, out); });
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

// out [count, rows] = x Wᵀ of x [count, columns], or [count, columns] = x W of x [count, rows]. Sums are in float32, in
// an order that depends on the sizes only.
void quantized_matmul(const QuantizedMatmulBlock &block, Operands operands) {
  const Weights weights = weights_of(block, operands, 0);
  const DType dtype = block.dtype;
  const int64_t count = block.count;
  const bool is_transposed = block.is_transposed;
  check_narrow_float(dtype);
  const int64_t width = is_transposed ? weights.rows : weights.columns;
  const int64_t out_width = is_transposed ? weights.columns : weights.rows;
  const Extent x_extent = Extent(width).along(count, width), out_extent = Extent(out_width).along(count, out_width);
  const char *x = operands.input(3, dtype, block.x_offset, x_extent);
  char *out = operands.result(4, dtype, 0, out_extent);
  if (out_extent.is_empty()) return;
  const bool is_wide = dtype == DType::float32;
  Scratch<float> wide_x(is_wide ? 0 : x_extent.count()), wide_out(is_wide ? 0 : out_extent.count());
  const QuantKernels &kernels = quant_kernels();
  if (!is_wide) kernels.widen(x, dtype, wide_x.data(), x_extent.count());
  const Product product = {weights, is_wide ? reinterpret_cast<const float *>(x) : wide_x.data(), count,
                           is_wide ? reinterpret_cast<float *>(out) : wide_out.data()};
  if (is_transposed) product.transposed();
  else product.forward();
  if (!is_wide) kernels.narrow(wide_out.data(), dtype, out, out_extent.count());
}

ORCHARD_FUNCTION("quantizedMatmul", quantized_matmul, QuantizedMatmulBlock, 5)

} // namespace
