#include "dequantize.h"

#include "../parallel.h"
#include "tuning.h"

#include <algorithm>

using namespace orchard;

namespace {

using tuning::quant::unpacked_columns;

// out [rows, columns] = the unpacked values, in float32, float16 or bfloat16.
void dequantize(const DequantizeBlock &block, Operands operands) {
  const Weights weights = weights_of(block, operands, 0);
  const DType dtype = block.dtype;
  check_narrow_float(dtype);
  char *out = operands.result(3, dtype, 0, Extent(weights.columns).along(weights.rows, weights.columns));
  const QuantKernels &kernels = quant_kernels();
  const int64_t stretches = (weights.columns + unpacked_columns - 1) / unpacked_columns;
  parallel_for(weights.rows * stretches, 32, [&](int64_t begin, int64_t end) {
    float values[unpacked_columns];
    for (int64_t task = begin; task < end; task++) {
      const int64_t row = task / stretches, first = task % stretches * unpacked_columns;
      const int64_t count = std::min(unpacked_columns, weights.columns - first);
      kernels.unpack(weights, row, first, count, values);
      kernels.narrow(values, dtype, element(out, dtype, row * weights.columns + first), count);
    }
  });
}

ORCHARD_FUNCTION("dequantize", dequantize, DequantizeBlock, 4)

} // namespace
